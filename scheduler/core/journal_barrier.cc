#include "scheduler/core/journal_barrier.h"

#include <algorithm>

namespace patchbay::scheduler {
namespace {

template <typename Held>
bool WaitsInOrder(const std::deque<std::pair<std::uint64_t, Held>>& held, std::uint64_t durable,
                  std::uint64_t last) {
  std::uint64_t before = durable + 1;
  for (const auto& [sequence, what] : held) {
    if (sequence < before || sequence > last) return false;
    before = sequence;
  }
  return true;
}

}  // namespace

Status JournalBarrier::LoadSnapshot(std::uint64_t sequence, std::string_view snapshot) {
  PB_RETURN_IF_ERROR(table_.Decode(snapshot));
  last_ = durable_ = sequence;
  return absl::OkStatus();
}

Status JournalBarrier::Replay(std::uint64_t sequence, std::string_view record) {
  if (sequence != last_ + 1) {
    return DataLoss("replay journal: record ", last_ + 1, " is missing (next is ", sequence, ")");
  }
  PB_ASSIGN_OR_RETURN(Record decoded, DecodeRecord(record));
  Effects effects;
  if (const Status applied = table_.Apply(std::move(decoded), effects); !applied.ok()) {
    return DataLoss("replay journal: record ", sequence, ": ", MessageOf(applied));
  }
  last_ = durable_ = sequence;
  return absl::OkStatus();
}

void JournalBarrier::SkipLost(std::uint64_t records) { table_.SkipLost(records); }

void JournalBarrier::Start() {
  Emit(StartRecord{table_.incarnation() + 1});
  start_ = last_;
}

void JournalBarrier::Emit(RecordBody&& body) {
  Record record{event_.wall, std::move(body)};
  event_.out->records.push_back({++last_, EncodeRecord(record)});
  Effects effects;
  const Status applied = table_.Apply(std::move(record), effects);
  PB_CHECK(applied.ok());
  on_effects_(effects);
}

void JournalBarrier::Send(PeerId peer, std::uint64_t request_id, protocol::Body&& body) {
  if (peer != 0) event_.out->sends.push_back({peer, request_id, std::move(body)});
}

void JournalBarrier::SendDurable(PeerId peer, std::uint64_t request_id, protocol::Body&& body) {
  if (peer == 0 || durable_ >= last_) return Send(peer, request_id, std::move(body));
  sends_.emplace_back(last_, SendAction{peer, request_id, std::move(body)});
}

void JournalBarrier::Answer(const Request& request, protocol::Body&& body) {
  SendDurable(request.peer, request.request_id, std::move(body));
}

void JournalBarrier::Refuse(const Request& request, const Status& status) {
  Answer(request, protocol::RequestFailed{OutcomeOf(status)});
}

void JournalBarrier::Hold(const TaskId& task) {
  tasks_.emplace_back(last_, task);
  if (Task* const held = table_.Find(task); held != nullptr) held->runnable_from = last_;
}

JournalBarrier::Released JournalBarrier::Release(std::uint64_t sequence) {
  durable_ = std::max(durable_, std::min(sequence, last_));
  while (!sends_.empty() && sends_.front().first <= durable_) {
    event_.out->sends.push_back(std::move(sends_.front().second));
    sends_.pop_front();
  }
  Released released;
  for (; !workers_.empty() && workers_.front().first <= durable_; workers_.pop_front()) {
    released.workers.push_back(workers_.front().second);
  }
  for (; !tasks_.empty() && tasks_.front().first <= durable_; tasks_.pop_front()) {
    released.tasks.push_back(tasks_.front().second);
  }
  return released;
}

Status JournalBarrier::Check() const {
  if (durable_ > last_) return Broken("more records are durable than there are");
  if (!WaitsInOrder(sends_, durable_, last_) || !WaitsInOrder(tasks_, durable_, last_) ||
      !WaitsInOrder(workers_, durable_, last_)) {
    return Broken("something waits for a record out of order, or for one that is durable");
  }
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
