// The stream book: every open stream, by job.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/state/cluster_table.h"
#include "scheduler/state/stream_table.h"

namespace patchbay::scheduler {

/// A stream that is to end once the event has been handled.
struct StreamEnd {
  JobId job = 0;
  JobState state = JobState::kFailed;
  Outcome outcome;
  /// The shard that cannot be made: of a stream with units, its unit alone fails.
  std::optional<ShardId> shard = std::nullopt;
};

/// Invariants: a stream is open only as long as its job runs; every lease that points into a
/// trainer's slots is in the lease book and counted at its slot; no two of them may write the same
/// bytes, and none into a slot of a later generation; a free slot has none; a batch is bound to one
/// slot and a slot to one batch; pending shards are exactly those to be leased; a stream's `leases`
/// are those that workers hold.
class StreamBook {
 public:
  std::map<JobId, Stream>& streams() { return streams_; }
  const std::map<JobId, Stream>& streams() const { return streams_; }
  Stream& Add(Stream&& stream);
  /// Null when it is not open.
  Stream* Find(JobId job);
  /// Null when no trainer is attached as that rank.
  Trainer* Find(const RankId& id);
  /// The shard that the lease is of; null when it has another lease by now, or is counted.
  Shard* FindShard(const Lease& lease);

  void Erase(JobId job) {
    last_found_ = nullptr;
    by_job_.erase(job);
    streams_.erase(job);
    MarkChanged(job);
  }
  /// Shards or slots of the stream changed, or it ended: dispatch is to look at it.
  void MarkChanged(JobId stream) {
    if (changed_.empty() || changed_.back() != stream) changed_.push_back(stream);
  }
  /// Nodes, workers, or what is known of them: dispatch is to look at all.
  void MarkAllChanged() { all_changed_ = true; }
  bool all_changed() const { return all_changed_; }
  bool changed() const { return all_changed_ || !changed_.empty(); }
  /// Streams to look at; some have ended, some are named twice. Valid until the next call.
  const std::vector<JobId>& TakeChanged();

  /// The stream ends when the event has been handled.
  void EndLater(StreamEnd&& end) { ending_.push_back(std::move(end)); }
  std::vector<StreamEnd> TakeEnding() { return std::exchange(ending_, {}); }

 private:
  std::map<JobId, Stream> streams_;
  std::unordered_map<JobId, Stream*> by_job_;
  Stream* last_found_ = nullptr;  ///< an event looks for one stream several times
  std::vector<StreamEnd> ending_;
  std::vector<JobId> changed_, taken_;
  bool all_changed_ = false;
};

}  // namespace patchbay::scheduler
