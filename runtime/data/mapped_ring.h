// Worker side of mapped delivery: the trainer's ring in this process, and the report that a shard
// is in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/data/ring_greeting.h"
#include "runtime/data/shard_header.h"
#include "runtime/memory/memfd_block.h"
#include "runtime/memory/prefault.h"

namespace patchbay::data {

/// Not thread-safe, except that windows of different grants may be written from any threads.
class MappedRing {
 public:
  struct Options {
    std::string socket_name;  ///< TrainerEndpoint::socket_name
    StreamSecret secret{};
    std::uint64_t stream = 0;
    std::int64_t timeout_ms = 5'000;
  };
  /// Unavailable when the trainer is not there or does not answer in time, PermissionDenied when
  /// the other side runs under another user or does not know the secret.
  static StatusOr<std::unique_ptr<MappedRing>> Connect(const Options& options);

  /// The bytes of a grant, to be written in place. InvalidArgument when the grant lies outside the
  /// ring. Whether it is live only the trainer knows.
  StatusOr<std::span<std::byte>> Window(const Grant& grant) const;

  /// The bytes are written (for a device landing: their event has passed). Unavailable once the
  /// trainer is gone.
  Status ReportShardFinished(const ShardHeader& header);

  /// True once the trainer closed its side: drop this ring.
  bool Closed() const;

  /// Slots, their size, and for a GPU worker the trainer's device block.
  const RingOffer& offer() const { return offer_; }

 private:
  MappedRing() = default;
  Options options_;
  UniqueFd socket_;
  memory::MemfdBlock mapping_;
  memory::Prefault prefault_;  ///< of mapping_, which it must not outlive
  RingOffer offer_;
};

}  // namespace patchbay::data
