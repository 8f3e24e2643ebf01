// The journal barrier: the durable state, the records that change it, and the effects that wait
// until they are on disk. Private to scheduler/core.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/core/event_context.h"
#include "scheduler/state/cluster_table.h"
#include "scheduler/state/job_table.h"

namespace patchbay::scheduler {

/// Owns the JobTable and alone applies records, so live and replayed state are equal. The other
/// parts change only the members of Task and Job that job_table.h marks as not durable.
///
/// Invariants: durable <= last; everything that waits does so for a record after the durable one
/// and no later than the last, in rising order; a peer's answers are sent in the order in which
/// they were made.
class JournalBarrier {
 public:
  /// Work that the last records made possible, once they are durable.
  struct Released {
    std::vector<WorkerId> workers;  ///< may be leased to
    std::vector<TaskId> tasks;      ///< may run
  };
  using OnEffects = std::function<void(Effects&)>;

  /// `on_effects` is called within Emit with the effects of the record.
  JournalBarrier(const EventContext& event, OnEffects on_effects)
      : event_(event), on_effects_(std::move(on_effects)) {}

  Status LoadSnapshot(std::uint64_t sequence, std::string_view snapshot);
  Status Replay(std::uint64_t sequence, std::string_view record);
  /// See Core::SkipLost.
  void SkipLost(std::uint64_t records);
  /// Opens the next incarnation: nothing is leased before its record is durable.
  void Start();

  JobTable& table() { return table_; }
  const JobTable& table() const { return table_; }
  std::uint64_t last_sequence() const { return last_; }
  std::uint64_t durable() const { return durable_; }
  /// This incarnation's own record is durable.
  bool IsOpen() const { return start_ != 0 && durable_ >= start_; }

  /// Journals the record and applies it. The record must fit (a bug otherwise).
  void Emit(RecordBody&& body);
  /// Sends at once: for messages that promise no durability. Messages to peer 0 are dropped.
  void Send(PeerId peer, std::uint64_t request_id, protocol::Body&& body);
  /// Once everything journalled so far is on disk.
  void SendDurable(PeerId peer, std::uint64_t request_id, protocol::Body&& body);
  /// Every answer, refusals too, is durable: whatever it rests on outlives a crash.
  void Answer(const Request& request, protocol::Body&& body);
  void Refuse(const Request& request, const Status& status);

  /// The worker is released, or the task, once everything journalled so far is on disk.
  void Hold(WorkerId worker) { workers_.emplace_back(last_, worker); }
  void Hold(const TaskId& task);
  /// The record that made the task runnable is not on disk yet: it will be released.
  bool Holds(const Task& task) const { return task.runnable_from > durable_; }
  /// Every record up to `sequence` is on disk: sends the messages that waited for it.
  Released Release(std::uint64_t sequence);

  Status Check() const;

 private:
  const EventContext& event_;
  const OnEffects on_effects_;
  JobTable table_;
  std::uint64_t last_ = 0, durable_ = 0, start_ = 0;
  std::deque<std::pair<std::uint64_t, TaskId>> tasks_;
  std::deque<std::pair<std::uint64_t, SendAction>> sends_;
  std::deque<std::pair<std::uint64_t, WorkerId>> workers_;
};

}  // namespace patchbay::scheduler
