#include "scheduler/state/stream_book.h"

#include <utility>

namespace patchbay::scheduler {

Stream* StreamBook::Find(JobId job) {
  if (last_found_ != nullptr && last_found_->job == job) return last_found_;
  const auto it = by_job_.find(job);
  return it == by_job_.end() ? nullptr : last_found_ = it->second;
}

Stream& StreamBook::Add(Stream&& stream) {
  const JobId job = stream.job;
  return *(by_job_[job] = &streams_.emplace(job, std::move(stream)).first->second);
}

Trainer* StreamBook::Find(const RankId& id) {
  Stream* stream = Find(id.stream);
  if (stream == nullptr) return nullptr;
  const auto trainer = stream->trainers.find(id.rank);
  return trainer == stream->trainers.end() ? nullptr : &trainer->second;
}

Shard* StreamBook::FindShard(const Lease& lease) {
  Trainer* trainer = Find(RankId{lease.stream, lease.shard.rank});
  if (trainer == nullptr) return nullptr;
  const auto filling = trainer->filling.find(PositionOf(lease.shard));
  if (filling == trainer->filling.end()) return nullptr;
  Shard& shard = filling->second.shards[lease.shard.shard];
  return shard.lease == lease.number ? &shard : nullptr;
}

const std::vector<JobId>& StreamBook::TakeChanged() {
  taken_.clear();
  taken_.swap(changed_);
  if (!std::exchange(all_changed_, false)) return taken_;
  for (const auto& [id, stream] : streams_) taken_.push_back(id);
  return taken_;
}

}  // namespace patchbay::scheduler
