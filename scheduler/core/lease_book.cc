#include "scheduler/core/lease_book.h"

#include <algorithm>
#include <utility>

#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

void LeaseBook::Erase(const Lease& lease) {
  part_bytes_ -= lease.result_parts.size();
  leases_.Erase(lease.number);
}

void LeaseBook::KeepPart(Lease& lease, std::string_view bytes) {
  lease.result_parts += bytes;
  part_bytes_ += bytes.size();
}

std::string LeaseBook::TakeParts(Lease& lease) {
  part_bytes_ -= lease.result_parts.size();
  return std::exchange(lease.result_parts, {});
}

void LeaseBook::Grant(WorkerId worker, protocol::TaskLease&& lease, std::size_t bytes) {
  Granted& granted = GrantedTo(worker);
  if (granted.bytes != 0 && granted.bytes + bytes > kMaxLeaseMessageBytes) {
    barrier_.Send(worker_table_.at(worker).peer, 0, std::move(granted.message));
    granted.message = {};
    granted.bytes = 0;
  }
  granted.bytes += bytes;
  granted.message.tasks.push_back(std::move(lease));
}

void LeaseBook::Grant(WorkerId worker, const protocol::ShardLease& lease) {
  GrantedTo(worker).message.shards.push_back(lease);
}

LeaseBook::Granted& LeaseBook::GrantedTo(WorkerId worker) {
  if (place_of_.size() <= worker) place_of_.resize(worker_table_.workers().size());
  std::uint32_t& place = place_of_[worker];
  if (place == 0) {
    grants_.push_back({worker, 0, {}});
    place = static_cast<std::uint32_t>(grants_.size());
  }
  return grants_[place - 1];
}

void LeaseBook::SendCollected() {
  for (auto& [id, revoked] : revokes_) {
    barrier_.Send(worker_table_.at(id).peer, 0, protocol::LeasesRevoked{revoked});
  }
  std::sort(grants_.begin(), grants_.end(),
            [](const Granted& a, const Granted& b) { return a.worker < b.worker; });
  for (Granted& granted : grants_) {
    place_of_[granted.worker] = 0;
    barrier_.Send(worker_table_.at(granted.worker).peer, 0, std::move(granted.message));
  }
  if (!revokes_.empty()) revokes_.clear();
  grants_.clear();
}

Status LeaseBook::CheckTasks(const Worker& worker) const {
  for (const LeaseNumber& number : worker.tasks) {
    const Lease* lease = Find(number);
    if (lease == nullptr || lease->is_shard || lease->worker != worker.id) {
      return Broken(StrCat("worker ", worker.id, " holds lease ", number.ToString(), ", which is ",
                           lease == nullptr ? "unknown" : "another's"));
    }
    const Task& task = barrier_.table().Find(lease->task.job)->tasks[lease->task.index];
    if (task.state != TaskState::kLeased || task.lease != number) {
      return Broken(StrCat("task ", lease->task.ToString(), " does not know its lease"));
    }
  }
  return absl::OkStatus();
}

Status LeaseBook::Check() const {
  if (!grants_.empty() || !revokes_.empty()) return Broken("an event's messages were not sent");
  std::size_t held = 0, batch = 0;
  for (const Worker& worker : worker_table_.workers()) {
    held += worker.tasks.size();
    PB_RETURN_IF_ERROR(CheckTasks(worker));
  }
  for (const auto& [number, held_lease] : leases()) {
    const Lease& lease = *held_lease;
    if (lease.number != number) return Broken("a lease is filed under another's number");
    if (number.incarnation == LastNumber().incarnation && number.counter > counter_) {
      return Broken("a lease has a number that was not given yet");
    }
    batch += lease.is_shard ? 0 : 1;
  }
  return held == batch ? absl::OkStatus() : Broken("leases nobody holds");
}

}  // namespace patchbay::scheduler
