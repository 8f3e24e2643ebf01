// The names of things that travel between processes. All are values; none owns anything.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/core/strings.h"

namespace patchbay {

/// A job, unique for the life of one scheduler state folder; rises by one with each submission. 0
/// is "none".
using JobId = std::uint64_t;

/// A task of a job. Index 0 is the job's root task; spawned tasks are numbered in the order they
/// were committed.
struct TaskId {
  JobId job = 0;
  std::uint32_t index = 0;

  auto operator<=>(const TaskId&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const TaskId& t) {
    return H::combine(std::move(h), t.job, t.index);
  }
  std::string ToString() const { return StrCat(job, ".", index); }
};

/// A lease is named by a number that only rises: the scheduler's journalled incarnation, then a
/// counter. A larger number was granted later. {0, 0} is "no lease".
struct LeaseNumber {
  std::uint32_t incarnation = 0;
  std::uint64_t counter = 0;

  auto operator<=>(const LeaseNumber&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LeaseNumber& l) {
    return H::combine(std::move(h), l.incarnation, l.counter);
  }
  std::string ToString() const { return StrCat(incarnation, ":", counter); }
};

/// A shard of a stream: a fixed contiguous slice of one batch's patches for one rank. Counted once,
/// by this id.
struct ShardId {
  std::uint32_t epoch = 0;
  std::uint64_t batch = 0;  ///< within the epoch
  std::uint32_t rank = 0;
  std::uint32_t shard = 0;  ///< within the rank's part of the batch

  auto operator<=>(const ShardId&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const ShardId& s) {
    return H::combine(std::move(h), s.epoch, s.batch, s.rank, s.shard);
  }
  std::string ToString() const { return StrCat(epoch, "/", batch, "/", rank, "/", shard); }
};

/// The right to write one shard's patches into a slot, once.
///
/// A grant is a value: copying it does not extend it. It is dead once its slot's generation has
/// moved on or its lease number is no longer the shard's newest; a dead grant is refused, and
/// refusing it is normal operation.
struct Grant {
  std::uint32_t slot = 0;
  std::uint64_t slot_generation = 0;  ///< rises by one each time the slot is given back
  std::uint32_t place = 0;            ///< first patch, within the rank's part of the batch
  std::uint32_t count = 0;            ///< patches; the ranges follow from layout and capacity

  auto operator<=>(const Grant&) const = default;
};

/// Stands before the user's number at the end of a host identity (runtime/os/host_identity.h).
inline constexpr std::string_view kHostUserMark = "-user";

/// Two host identities that differ in nothing but the user.
inline bool DifferInUserOnly(std::string_view a, std::string_view b) {
  const std::size_t machine = a.rfind(kHostUserMark);
  return machine != std::string_view::npos && b.rfind(kHostUserMark) == machine && a != b &&
         a.substr(0, machine) == b.substr(0, machine);
}

}  // namespace patchbay
