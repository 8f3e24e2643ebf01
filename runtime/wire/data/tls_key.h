// The key of the connections to one trainer: derived, never sent.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/core/status.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::data {

/// One life of one trainer.
struct TrainerIdentity {
  std::uint64_t stream = 0;
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  /// "77|0|1311768467294899695": the identity of the pre-shared key, visible on the wire.
  std::string Text() const;
  bool operator==(const TrainerIdentity&) const = default;
};

/// An external pre-shared key of TLS 1.3 with SHA-256, and its identity.
struct TlsKey {
  std::string identity;
  std::array<unsigned char, 32> bytes{};
};
/// HKDF-SHA256 of the stream secret for that trainer: a sender that knows another stream, or a
/// former life of the trainer, has another key.
StatusOr<TlsKey> DeriveTlsKey(const StreamSecret& secret, const TrainerIdentity& trainer);

}  // namespace patchbay::data
