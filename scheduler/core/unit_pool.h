// The units of a stream that go whole to one consumer: assigned, finished, back in the pool.
// Private to scheduler/core.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/core/journal_barrier.h"
#include "scheduler/core/recovery.h"
#include "scheduler/state/job_logs.h"
#include "scheduler/state/stream_book.h"

namespace patchbay::scheduler {

/// Decides which consumer has which unit of a stream with units. Only finishing one is journalled;
/// after a restart the consumers say which they have. notes/0009 has the reasons.
///
/// Invariants: a unit has one holder at most, an attached or suspended trainer whose course it is
/// in, unless it is finished; a unit in nobody's hands is finished, returned, or was never given
/// away.
class UnitPool {
 public:
  UnitPool(JournalBarrier& barrier, JobLogs& logs, const Recovery& recovery, StreamBook& streams)
      : barrier_(barrier), logs_(logs), recovery_(recovery), streams_(streams) {}

  /// The consumer's next batch at or after Trainer::next. Gives it one more unit when all batches
  /// of those that it has are bound; nullopt while none can be had.
  std::optional<Position> NextBatch(Stream& stream, Trainer& trainer);
  /// A consumer that this scheduler does not know says which units it has. Aborted, and nothing
  /// changes, when one of them is another's by now.
  Status CheckNamed(const Stream& stream, const protocol::AttachTrainer& message) const;
  void TakeNamed(Stream& stream, Trainer& trainer, std::vector<AssignedUnit> units);
  /// Tells a consumer which units it has. Nothing of a stream without units.
  void Tell(const Stream& stream, const Trainer& trainer);
  /// The consumer leaves, or is given up. Its units go to others at once; `died`: it ended without
  /// a word, which for one unit is a failure the third time.
  void TakeBack(Stream& stream, Trainer& trainer, bool died);
  void Finish(const Request& request, protocol::FinishUnit&& message);
  /// The unit fails alone, unless it is finished.
  void Fail(Stream& stream, std::uint64_t unit, Outcome&& outcome);
  /// The same for the unit of a shard that cannot be made. Returns what to tell its consumer.
  Outcome FailOf(Stream& stream, const ShardId& shard, Outcome&& outcome);
  /// The stream ends when the event has been handled, if all its units are finished.
  void EndIfDone(const Stream& stream);

  Status Check(const JobTable& table) const;

 private:
  std::optional<std::uint64_t> Lowest(Stream& stream) const;
  bool Assign(Stream& stream, Trainer& trainer);
  bool IsFinished(const Stream& stream, std::uint64_t unit) const;

  JournalBarrier& barrier_;
  JobLogs& logs_;
  const Recovery& recovery_;
  StreamBook& streams_;
};

}  // namespace patchbay::scheduler
