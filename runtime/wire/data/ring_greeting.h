// The three messages before a worker may map a ring, on a SOCK_SEQPACKET Unix socket. Neither side
// ever sends the stream secret: each proves it over the other's nonce.
//
//   trainer  Challenge {nonce}
//   worker   Hello {stream, scheduler incarnation of its lease, nonce, proof}
//   trainer  RingOffer {slots, capacity, strides, layout digest, device handle, proof} + the memfd
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/memory/device_block.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::data {

inline constexpr std::size_t kMaxGreetingBytes = 512;
using Nonce = std::array<std::byte, 32>;

struct Challenge {
  Nonce nonce{};
};
struct Hello {
  std::uint64_t stream = 0;
  Nonce nonce{};
  /// The scheduler whose lease the worker asks for. Under an older one it writes nothing through
  /// this mapping.
  std::uint32_t incarnation = 0;
};
/// How the trainer's slots lie in its memory. A worker that computes others refuses.
struct RingOffer {
  std::uint32_t slots = 0;
  std::uint32_t capacity = 0;     ///< SlotLayout::capacity
  std::uint64_t host_stride = 0;  ///< SlotLayout::host_stride; the memfd has `slots` of them
  std::uint64_t device_stride = 0;
  Digest layout;  ///< BatchLayout::ToDigest
  std::optional<memory::DeviceBlockHandle> device;

  std::uint64_t RingHostBytes() const { return slots * host_stride; }
};

std::vector<std::byte> EncodeChallenge(const Challenge& challenge);
StatusOr<Challenge> DecodeChallenge(std::span<const std::byte> bytes);

/// `theirs` is the nonce of the Challenge it answers.
std::vector<std::byte> EncodeHello(const Hello& hello, const Nonce& theirs,
                                   const StreamSecret& secret);
/// PermissionDenied when the proof is wrong.
StatusOr<Hello> DecodeHello(std::span<const std::byte> bytes, const Nonce& ours,
                            const StreamSecret& secret);

/// `theirs` is the nonce of the Hello it answers.
std::vector<std::byte> EncodeRingOffer(const RingOffer& offer, const Nonce& theirs,
                                       const StreamSecret& secret);
/// InvalidArgument also when the sizes contradict each other.
StatusOr<RingOffer> DecodeRingOffer(std::span<const std::byte> bytes, const Nonce& ours,
                                    const StreamSecret& secret);

}  // namespace patchbay::data
