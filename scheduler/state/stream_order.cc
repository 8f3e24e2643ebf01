#include "scheduler/state/stream_order.h"

#include <algorithm>

namespace patchbay::scheduler {
namespace {

bool Wants(const Stream& stream) {
  return !stream.on_hold &&
         std::any_of(stream.trainers.begin(), stream.trainers.end(), [](const auto& entry) {
           return entry.second.state == TrainerState::kAttached && !entry.second.pending.empty();
         });
}

}  // namespace

void StreamOrder::Refresh(JobId job, Stream* stream) {
  auto wanting = wanting_.find(job);
  const bool wants = stream != nullptr && Wants(*stream);
  if (wanting != wanting_.end() && (!wants || wanting->second.account != stream->account)) {
    Remove(wanting);
    wanting = wanting_.end();
  }
  if (!wants) return;
  const WantingStream::Rank rank{-stream->priority, stream->leases, stream->last_lease, job};
  const bool fresh = wanting == wanting_.end();
  if (fresh) wanting = wanting_.emplace(job, WantingStream{}).first;
  WantingStream& one = wanting->second;
  one.stream = stream;
  if (one.blocked || (one.capped && fair_.MayHoldAny(one.account))) {
    one.blocked = one.capped = one.refused = false;
  }
  if (!fresh && one.rank == rank) return;
  const WantingStream::Rank before = std::exchange(one.rank, rank);
  one.account = stream->account;
  if (places_.size() <= one.account) places_.resize(one.account + 1);
  Places& places = places_[one.account];
  if (places.empty()) fair_.Enqueue(one.account, WorkKind::kShards);
  if (fresh) {
    places.emplace(rank, &one);
    return;
  }
  auto node = places.extract(before);
  node.key() = rank;
  places.insert(std::move(node));
}

void StreamOrder::ForgetRefusals() {
  for (auto& [job, wanting] : wanting_) wanting.refused = false;
}

void StreamOrder::Remove(std::unordered_map<JobId, WantingStream>::iterator wanting) {
  Places& places = places_[wanting->second.account];
  places.erase(wanting->second.rank);
  if (places.empty()) fair_.Dequeue(wanting->second.account, WorkKind::kShards);
  wanting_.erase(wanting);
}

}  // namespace patchbay::scheduler
