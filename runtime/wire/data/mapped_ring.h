// Worker side of mapped delivery: the trainer's ring in this process, and the report that a shard
// is in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/memory/host_buffer.h"
#include "runtime/model/stream/slot_layout.h"
#include "runtime/os/file.h"
#include "runtime/wire/data/ring_greeting.h"
#include "runtime/wire/data/shard_header.h"

namespace patchbay::data {

/// Not thread-safe, except that windows of different grants may be written from any threads.
class MappedRing {
 public:
  struct Options {
    std::string socket_name;  ///< TrainerEndpoint::socket_name
    StreamSecret secret{};
    std::uint64_t stream = 0;
    /// The oldest scheduler incarnation whose leases may be written under.
    std::uint32_t incarnation = 0;
    BatchLayout layout;
    std::uint32_t capacity = 0;  ///< most patches any rank's part has
    std::int64_t timeout_ms = 5'000;
  };
  /// Unavailable when the trainer is not there or does not answer in time, PermissionDenied when
  /// the other side runs under another user or does not know the secret, FailedPrecondition when
  /// its slots do not match layout and capacity.
  static StatusOr<std::unique_ptr<MappedRing>> Connect(const Options& options);

  /// Whether it may be written through under that lease: not under one of an earlier scheduler than
  /// the one it was asked for under, of which the trainer has been told that it is void.
  bool Covers(const LeaseNumber& lease) const { return lease.incarnation >= options_.incarnation; }

  /// The grant's bytes of each array, to be written in place; of an array on a device its staging
  /// memory. InvalidArgument when the grant lies outside the ring. Whether it is live only the
  /// trainer knows.
  StatusOr<std::vector<std::span<std::byte>>> Window(const Grant& grant) const;
  /// Where the grant's bytes of an array on the device begin in the trainer's device block.
  std::uint64_t DeviceOffset(const Grant& grant, std::size_t array) const;

  /// The bytes are written (for a device landing: their event has passed). Unavailable once the
  /// trainer is gone.
  Status ReportShardFinished(const ShardHeader& header);

  /// True once the trainer closed its side: drop this ring.
  bool Closed() const;

  /// Slots, their strides, and for a GPU worker the trainer's device block.
  const RingOffer& offer() const { return offer_; }
  const SlotLayout& layout() const { return layout_; }
  /// All slots' host memory.
  std::span<std::byte> host() const { return mapping_.bytes(); }

 private:
  MappedRing() = default;
  Status CheckLayout();
  Options options_;
  UniqueFd socket_;
  memory::MemfdBlock mapping_;
  memory::Prefault prefault_;  ///< the prefault of mapping_, which it must not outlive
  RingOffer offer_;
  SlotLayout layout_;
};

}  // namespace patchbay::data
