#include "runtime/wire/data/ring.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/core/clock.h"

namespace patchbay::data {

StatusOr<std::unique_ptr<Ring>> Ring::Create(const SlotTableOptions& options,
                                             const BatchLayout& layout,
                                             std::unique_ptr<RingMemory> memory) {
  PB_ASSIGN_OR_RETURN(SlotTable table, SlotTable::Create(options));
  if (memory == nullptr) return InvalidArgument("make ring: it has no memory");
  PB_ASSIGN_OR_RETURN(SlotLayout slots, SlotLayout::Of(layout, Capacity(options.geometry),
                                                       memory->device() != nullptr));
  PB_ASSIGN_OR_RETURN(const RingBytes bytes, RingBytesOf(slots, table.SlotCount()));
  if (memory->host().size() < bytes.host) {
    return InvalidArgument("make ring: its memory is smaller than its slots");
  }
  std::unique_ptr<Ring> ring(new Ring(options, std::move(table), std::move(memory)));
  ring->batch_layout_ = layout;
  ring->layout_ = std::move(slots);
  return ring;
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

Status Ring::CheckArrays(const ShardHeader& header) const {
  if (header.arrays == layout_.arrays()) return absl::OkStatus();
  return InvalidArgument("admit shard: ", header.shard.ToString(), ": ", int{header.arrays},
                         " arrays, the stream has ", layout_.arrays());
}

std::uint64_t Ring::HostOffset(const Grant& grant, std::size_t array) const {
  return layout_.host_stride() * grant.slot +
         layout_.InHost(array, grant.place, grant.count).offset_bytes;
}

std::uint64_t Ring::DeviceOffset(const Grant& grant, std::size_t array) const {
  return layout_.device_stride() * grant.slot +
         layout_.InDevice(array, grant.place, grant.count).offset_bytes;
}

Status Ring::Refused(Status status) {
  ++stats_.shards_refused;
  return status;
}

/// Counts under the lock; the events are the caller's, after it.
Status Ring::CountLocked(const ShardHeader& header) {
  if (Status fits = CheckArrays(header); !fits.ok()) return Refused(std::move(fits));
  auto counted = table_.Count(header);
  if (!counted.ok()) return Refused(counted.status());
  ++stats_.shards_counted;
  stats_.bytes_counted += layout_.BytesOf(header.grant.count);
  stats_.stages.Add(header.times, header.grant.count);
  if (counted->move.has_value()) {
    const Status moved = Move(*counted->move);
    if (!moved.ok()) failed_ = moved;
  }
  if (counted->batch_full || !failed_.ok()) changed_.notify_all();
  return absl::OkStatus();
}

/// Copies a shard's patches of every array, in the memory the consumer reads.
Status Ring::Move(const ShardMove& move) {
  const Grant from{move.from_slot, 0, move.place, move.count};
  const Grant to{move.to_slot, 0, move.place, move.count};
  std::byte* const host = memory_->host().data();
  for (std::size_t i = 0; i < layout_.arrays(); ++i) {
    const std::uint64_t size = move.count * layout_.PatchBytes(i);
    if (layout_.OnDevice(i)) {
      // The staging area of the target slot is unused.
      PB_RETURN_IF_ERROR(
          memory_->MoveSync(DeviceOffset(from, i), HostOffset(to, i), DeviceOffset(to, i), size));
    } else {
      std::memcpy(host + HostOffset(to, i), host + HostOffset(from, i), size);
    }
  }
  return absl::OkStatus();
}

/// Copies the bytes that landed in staging memory with this header to the device.
Status Ring::Stage(const ShardHeader& header) {
  if (header.landing == Landing::kDevice) return absl::OkStatus();
  for (std::size_t i = 0; i < layout_.arrays(); ++i) {
    const bool came = header.array == kEveryArray || header.array == i;
    if (!came || !layout_.OnDevice(i)) continue;
    PB_RETURN_IF_ERROR(memory_->StageSync(HostOffset(header.grant, i),
                                          DeviceOffset(header.grant, i),
                                          header.grant.count * layout_.PatchBytes(i)));
  }
  return absl::OkStatus();
}

Status Ring::CountWritten(const ShardHeader& header) {
  if (header.array != kEveryArray) {
    const std::lock_guard lock(mu_);
    return Refused(InvalidArgument("count shard: a report is of every array"));
  }
  if (header.landing == Landing::kDevice && memory_->device() == nullptr) {
    const std::lock_guard lock(mu_);
    return Refused(InvalidArgument("count shard: the slots are not on a device"));
  }
  if (memory_->device() != nullptr && header.landing == Landing::kHost) {
    PB_RETURN_IF_ERROR(Begin(header));
    return FinishReceive(header, absl::OkStatus()).status();
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

Status Ring::Begin(const ShardHeader& header) {
  const std::lock_guard lock(mu_);
  Status begun = CheckArrays(header);
  if (begun.ok()) begun = table_.BeginReceive(header);
  return begun.ok() ? begun : Refused(std::move(begun));
}

StatusOr<std::span<std::byte>> Ring::BeginReceive(const ShardHeader& header) {
  if (header.array == kEveryArray) {
    const std::lock_guard lock(mu_);
    return Refused(InvalidArgument("receive shard: a message is of one array"));
  }
  PB_RETURN_IF_ERROR(Begin(header));
  return memory_->host().subspan(HostOffset(header.grant, header.array),
                                 header.grant.count * layout_.PatchBytes(header.array));
}

StatusOr<bool> Ring::FinishReceive(const ShardHeader& header, const Status& transfer) {
  const std::int64_t begun_ns = SteadyNowNs();
  const Status landed = transfer.ok() ? Stage(header) : transfer;
  const std::uint32_t staged_us = ToStageUs(SteadyNowNs() - begun_ns);
  // The ranges are within the slot: a copy that fails is the device's end, for the whole ring.
  if (transfer.ok() && !landed.ok()) Fail(landed);
  RingEvents* events = nullptr;
  {
    const std::lock_guard lock(mu_);
    const bool whole = table_.EndReceive(header, landed.ok());
    if (!landed.ok()) {
      ++(absl::IsDataLoss(landed) ? stats_.shards_corrupt : stats_.receives_failed);
      return landed;
    }
    stats_.stages.transfer_us += staged_us;
    if (!whole) return false;
    PB_RETURN_IF_ERROR(CountLocked(header));
    events = events_;
  }
  if (events != nullptr) events->OnCounted(header.shard, header.lease);
  return true;
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
  for (const ShardMove& move : evacuation.moves) PB_RETURN_IF_ERROR(Move(move));
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
  batch.size_bytes = layout_.BytesOf(batch.patches);
  batch.arrays.resize(layout_.arrays());
  table_.Take(batch.at);
  if (!slot.has_value()) return batch;
  batch.slot = slot;
  batch.generation = table_.Report(*slot).generation;
  const Grant all{*slot, 0, 0, batch.patches};
  for (std::size_t i = 0; i < layout_.arrays(); ++i) {
    batch.arrays[i] = layout_.OnDevice(i) ? memory_->device() + DeviceOffset(all, i)
                                          : memory_->host().data() + HostOffset(all, i);
  }
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
      return ResourceExhausted("next batch: ", table_.next().ToString(),
                               ": every slot is held: ", Holders());
    }
    until = std::min(until, give_up);
    if (timeout_ms >= 0 && now >= begun + milliseconds(timeout_ms)) {
      return DeadlineExceeded("next batch: ", table_.next().ToString(), ": not complete after ",
                              timeout_ms, " ms");
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

void Ring::AddUnits(const std::vector<AssignedUnit>& units) {
  {
    const std::lock_guard lock(mu_);
    table_.AddUnits(units);
  }
  changed_.notify_all();
}

void Ring::RemoveUnit(std::uint64_t unit) {
  const std::lock_guard lock(mu_);
  table_.RemoveUnit(unit);
}

std::vector<AssignedUnit> Ring::units() const {
  const std::lock_guard lock(mu_);
  return table_.units();
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
