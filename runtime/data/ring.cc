#include "runtime/data/ring.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/base/clock.h"

namespace patchbay::data {

StatusOr<std::unique_ptr<Ring>> Ring::Create(const SlotTableOptions& options,
                                             std::unique_ptr<RingMemory> memory) {
  PB_ASSIGN_OR_RETURN(SlotTable table, SlotTable::Create(options));
  PB_ASSIGN_OR_RETURN(const std::uint64_t bytes,
                      RingBytes(table.SlotCount(), SlotBytes(options.geometry)));
  if (memory == nullptr || memory->host().size() < bytes) {
    return absl::InvalidArgumentError("make ring: its memory is smaller than its slots");
  }
  return std::unique_ptr<Ring>(new Ring(options, std::move(table), std::move(memory)));
}

Ring::Ring(const SlotTableOptions& options, SlotTable table, std::unique_ptr<RingMemory> memory)
    : options_(options),
      memory_(std::move(memory)),
      table_(std::move(table)),
      holders_(options.slots + options.spares) {}

void Ring::SetEvents(RingEvents* events) {
  const std::lock_guard lock(mu_);
  events_ = events;
}

std::uint64_t Ring::Offset(std::uint32_t slot, std::uint64_t offset) const {
  return SlotStride(SlotBytes(options_.geometry)) * slot + offset;
}

Status Ring::Refused(Status status) {
  ++stats_.shards_refused;
  return status;
}

/// Counts under the lock; the events are the caller's, after it.
Status Ring::CountLocked(const ShardHeader& header) {
  auto counted = table_.Count(header);
  if (!counted.ok()) return Refused(counted.status());
  ++stats_.shards_counted;
  stats_.bytes_counted += header.grant.size_bytes;
  if (counted->move.has_value()) {
    const ShardMove& m = *counted->move;
    const Status moved = memory_->CopySync(Offset(m.from_slot, m.offset_bytes),
                                           Offset(m.to_slot, m.offset_bytes), m.size_bytes);
    if (!moved.ok()) failed_ = moved;
  }
  if (counted->batch_full || !failed_.ok()) changed_.notify_all();
  return absl::OkStatus();
}

Status Ring::Stage(const ShardHeader& header) {
  if (memory_->device() == nullptr || header.landing == Landing::kDevice) return absl::OkStatus();
  return memory_->StageSync(Offset(header.grant.slot, header.grant.offset_bytes),
                            header.grant.size_bytes);
}

Status Ring::CountWritten(const ShardHeader& header) {
  if (header.landing == Landing::kDevice && memory_->device() == nullptr) {
    const std::lock_guard lock(mu_);
    return Refused(absl::InvalidArgumentError("count shard: the slots are not on a device"));
  }
  if (memory_->device() != nullptr && header.landing == Landing::kHost) {
    PB_RETURN_IF_ERROR(BeginReceive(header).status());
    return FinishReceive(header, absl::OkStatus());
  }
  RingEvents* events = nullptr;
  {
    const std::lock_guard lock(mu_);
    PB_RETURN_IF_ERROR(CountLocked(header));
    events = events_;
  }
  if (events != nullptr) events->OnCounted(header.shard, header.lease);
  return absl::OkStatus();
}

StatusOr<std::span<std::byte>> Ring::BeginReceive(const ShardHeader& header) {
  const std::lock_guard lock(mu_);
  if (Status begun = table_.BeginReceive(header); !begun.ok()) return Refused(std::move(begun));
  return memory_->host().subspan(Offset(header.grant.slot, header.grant.offset_bytes),
                                 header.grant.size_bytes);
}

Status Ring::FinishReceive(const ShardHeader& header, const Status& transfer) {
  const Status landed = transfer.ok() ? Stage(header) : transfer;
  RingEvents* events = nullptr;
  {
    const std::lock_guard lock(mu_);
    table_.EndReceive(header);
    if (!landed.ok()) {
      ++(absl::IsDataLoss(landed) ? stats_.shards_corrupt : stats_.receives_failed);
      return landed;
    }
    PB_RETURN_IF_ERROR(CountLocked(header));
    events = events_;
  }
  if (events != nullptr) events->OnCounted(header.shard, header.lease);
  return absl::OkStatus();
}

bool Ring::Receiving(const ShardId& shard, const LeaseNumber& lease) const {
  const std::lock_guard lock(mu_);
  return table_.Receiving(shard, lease);
}

bool Ring::Fence(const ShardId& shard, const LeaseNumber& lease) {
  const std::lock_guard lock(mu_);
  return table_.Fence(shard, lease);
}

StatusOr<std::optional<std::uint32_t>> Ring::Evacuate(const ShardId& shard, const Grant& grant) {
  const std::lock_guard lock(mu_);
  PB_ASSIGN_OR_RETURN(const Evacuation evacuation, table_.Evacuate(shard, grant));
  if (evacuation.resting_slot.has_value()) ++stats_.batches_moved;
  for (const ShardMove& m : evacuation.moves) {
    PB_RETURN_IF_ERROR(memory_->CopySync(Offset(m.from_slot, m.offset_bytes),
                                         Offset(m.to_slot, m.offset_bytes), m.size_bytes));
  }
  return evacuation.resting_slot;
}

void Ring::ProveGone(std::uint32_t slot) {
  const std::lock_guard lock(mu_);
  table_.ProveGone(slot);
}

TakenBatch Ring::TakeLocked(std::optional<std::uint32_t> slot) {
  TakenBatch batch;
  batch.at = table_.next();
  batch.patches = RankRun(options_.geometry, batch.at.batch, options_.rank).count;
  batch.size_bytes = batch.patches * options_.geometry.patch_bytes;
  table_.Take(batch.at);
  if (!slot.has_value()) return batch;
  batch.slot = slot;
  batch.generation = table_.Report(*slot).generation;
  std::byte* base = memory_->device() != nullptr ? memory_->device() : memory_->host().data();
  batch.data = base + Offset(*slot, 0);
  holders_[*slot].clear();
  return batch;
}

StatusOr<TakenBatch> Ring::Next(std::int64_t timeout_ms, std::int64_t grace_ms) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  const auto begun = steady_clock::now();
  auto give_up = steady_clock::time_point::max();  // set while every slot is held
  std::unique_lock lock(mu_);
  for (;;) {
    if (!failed_.ok()) return failed_;
    if (table_.IsEmpty(table_.next())) return TakeLocked(std::nullopt);
    if (const auto slot = table_.FullSlot(table_.next())) return TakeLocked(slot);

    const auto now = steady_clock::now();
    auto until = now + std::chrono::hours(1);
    if (timeout_ms >= 0) until = std::min(until, begun + milliseconds(timeout_ms));
    if (!table_.Exhausted()) {
      give_up = steady_clock::time_point::max();
    } else if (give_up == steady_clock::time_point::max()) {
      give_up = now + milliseconds(grace_ms);
    } else if (now >= give_up) {
      return absl::ResourceExhaustedError(
          StrCat("next batch: ", table_.next().ToString(), ": every slot is held: ", Holders()));
    }
    until = std::min(until, give_up);
    if (timeout_ms >= 0 && now >= begun + milliseconds(timeout_ms)) {
      return absl::DeadlineExceededError(StrCat("next batch: ", table_.next().ToString(),
                                                ": not complete after ", timeout_ms, " ms"));
    }
    changed_.wait_until(lock, until);
  }
}

std::string Ring::Holders() const {
  std::vector<std::string> held;
  for (const SlotReport& report : table_.ReportAll()) {
    if (report.phase != SlotPhase::kInUse) continue;
    const std::string& name = holders_[report.slot];
    held.push_back(StrCat("slot ", report.slot, " by batch ", report.at.ToString(),
                          name.empty() ? "" : StrCat(" (", name, ")")));
  }
  return StrJoin(held, ", ");
}

void Ring::Release(std::uint32_t slot, std::uint64_t generation) {
  RingEvents* events = nullptr;
  SlotReport report;
  {
    const std::lock_guard lock(mu_);
    if (!table_.Release(slot, generation)) return;
    holders_[slot].clear();
    report = table_.Report(slot);
    events = events_;
  }
  changed_.notify_all();
  if (events != nullptr) events->OnSlotFree(report);
}

void Ring::NameHolder(std::uint32_t slot, std::string name) {
  const std::lock_guard lock(mu_);
  if (slot < holders_.size()) holders_[slot] = std::move(name);
}

void Ring::Fail(const Status& status) {
  {
    const std::lock_guard lock(mu_);
    if (failed_.ok()) failed_ = status;
  }
  changed_.notify_all();
}

std::vector<SlotReport> Ring::ReportAll() const {
  const std::lock_guard lock(mu_);
  return table_.ReportAll();
}

SlotReport Ring::ReportBatch(const ShardId& shard, const Grant& grant) const {
  const std::lock_guard lock(mu_);
  if (const auto slot = table_.SlotOf(Position{shard.epoch, shard.batch})) {
    return table_.Report(*slot);
  }
  return table_.Report(std::min(grant.slot, table_.SlotCount() - 1));
}

Position Ring::next() const {
  const std::lock_guard lock(mu_);
  return table_.next();
}

RingStats Ring::stats() const {
  const std::lock_guard lock(mu_);
  return stats_;
}

void Ring::CountRefusal() {
  const std::lock_guard lock(mu_);
  ++stats_.shards_refused;
}

}  // namespace patchbay::data
