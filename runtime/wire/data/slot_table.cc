#include "runtime/wire/data/slot_table.h"

#include <algorithm>
#include <utility>

namespace patchbay::data {
namespace {

std::uint32_t AllArrays(const ShardHeader& header) { return (1u << header.arrays) - 1; }

/// The set of arrays that come with the header.
std::uint32_t ArraysOf(const ShardHeader& header) {
  return header.array == kEveryArray ? AllArrays(header) : 1u << header.array;
}

std::string Name(const ShardHeader& header) {
  return StrCat("admit shard: ", header.shard.ToString(), " lease ", header.lease.ToString(), ": ");
}

}  // namespace

StatusOr<SlotTable> SlotTable::Create(const SlotTableOptions& options) {
  const StreamGeometry& g = options.geometry;
  const auto refuse = [](std::string_view cause) {
    return InvalidArgument("make ring: stream geometry: ", cause);
  };
  if (const Status cut = CheckGeometry(g); !cut.ok()) return refuse(MessageOf(cut));
  if (options.rank >= g.world_size && g.units.empty()) {
    return refuse("the rank is outside the world");
  }
  if (options.slots == 0 || options.slots > kMaxRingSlots ||
      options.spares > kMaxRingSlots - options.slots) {
    return refuse("too few or too many slots");
  }
  if (options.first.batch >= BatchesPerEpoch(g)) return refuse("the first batch is past the epoch");
  return SlotTable(options);
}

SlotTable::SlotTable(const SlotTableOptions& options)
    : options_(options), slots_(options.slots + options.spares), next_(options.first) {
  for (std::size_t i = options.slots; i < slots_.size(); ++i) slots_[i].phase = SlotPhase::kSpare;
}

Position SlotTable::next() const {
  if (!HasUnits()) return next_;
  return course_.At(options_.geometry, next_).value_or(next_);
}

void SlotTable::AddUnits(const std::vector<AssignedUnit>& units) {
  for (const AssignedUnit& unit : units) (void)course_.Add(options_.geometry, unit);
}

/// Whether the batch may lie in the ring. In a stream with units it may be one of a unit that is
/// not known here yet: a worker that was given a shard of it may write all the same.
bool SlotTable::InWindow(Position at) const {
  const std::uint64_t per_epoch = BatchesPerEpoch(options_.geometry);
  if (at < next_ || at.batch >= per_epoch) return false;
  if (HasUnits()) return true;
  const auto ordinal = [per_epoch](Position p) {
    return static_cast<unsigned __int128>(p.epoch) * per_epoch + p.batch;
  };
  return ordinal(at) - ordinal(next_) < slots_.size();
}

Status SlotTable::CheckForm(const ShardHeader& header) const {
  const ShardId& shard = header.shard;
  if (header.stream != options_.stream || shard.rank != options_.rank) {
    return InvalidArgument(Name(header) + "it belongs to another stream or rank");
  }
  if (PositionOf(shard) < next_) {
    return FailedPrecondition(Name(header) + "its batch was taken already");
  }
  if (!InWindow(PositionOf(shard))) {
    return InvalidArgument(Name(header) + "its batch is beyond the ring");
  }
  if (HasUnits() && !course_.Has(options_.geometry, PositionOf(shard))) {
    return FailedPrecondition(Name(header) + "its unit was not assigned here yet");
  }
  if (shard.shard >= ShardsInRank(options_.geometry, shard.batch, shard.rank)) {
    return InvalidArgument(Name(header) + "the batch has no such shard");
  }
  const PatchRun run = ShardRun(options_.geometry, shard.batch, shard.rank, shard.shard);
  if (header.grant.place != run.place || header.grant.count != run.count) {
    return InvalidArgument(Name(header) + "its range is not the shard's");
  }
  if (header.grant.slot >= slots_.size()) {
    return InvalidArgument(Name(header) + "the ring has no such slot");
  }
  return absl::OkStatus();
}

Status SlotTable::CheckSlot(const ShardHeader& header) const {
  const Slot& slot = slots_[header.grant.slot];
  const Position at = PositionOf(header.shard);
  if (slot.generation != header.grant.slot_generation) {
    return FailedPrecondition(Name(header), "dead grant: slot ", header.grant.slot,
                              " is at generation ", slot.generation, ", not ",
                              header.grant.slot_generation);
  }
  const Batch* batch = FindBatch(at);
  switch (slot.phase) {
    case SlotPhase::kFree:
      if (batch == nullptr || !batch->slot.has_value()) return absl::OkStatus();
      return FailedPrecondition(Name(header) + "its batch lies in another slot");
    case SlotPhase::kFilling:
    case SlotPhase::kFull:
    case SlotPhase::kResting:
      if (slot.at == at) return absl::OkStatus();
      return FailedPrecondition(Name(header) + "the slot holds another batch");
    case SlotPhase::kInUse:
    case SlotPhase::kSpare:
      break;
  }
  return FailedPrecondition(Name(header) + "the slot is not granted");
}

Status SlotTable::CheckShard(const ShardHeader& header) const {
  const Batch* batch = FindBatch(PositionOf(header.shard));
  if (batch == nullptr) return absl::OkStatus();
  const Shard& shard = batch->shards[header.shard.shard];
  if (shard.counted) return AlreadyExists(Name(header) + "it counted before");
  if (shard.fenced.has_value() && header.lease <= *shard.fenced) {
    return FailedPrecondition(Name(header) + "the lease is fenced");
  }
  return absl::OkStatus();
}

Status SlotTable::Admit(const ShardHeader& header) const {
  PB_RETURN_IF_ERROR(CheckForm(header));
  PB_RETURN_IF_ERROR(CheckShard(header));
  return CheckSlot(header);
}

/// Requests under another lease still write to the shard's range.
Status SlotTable::CheckNoTransfer(const ShardHeader& header) const {
  for (const Transfer& transfer : slots_[header.grant.slot].transfers) {
    if (transfer.shard == header.shard && transfer.running > 0) {
      return Unavailable(Name(header) + "another transfer of it is running");
    }
  }
  return absl::OkStatus();
}

SlotTable::Transfer* SlotTable::FindTransfer(Slot& slot, const ShardId& shard) {
  const auto it = std::find_if(slot.transfers.begin(), slot.transfers.end(),
                               [&](const Transfer& transfer) { return transfer.shard == shard; });
  return it == slot.transfers.end() ? nullptr : &*it;
}

void SlotTable::ForgetTransfer(Slot& slot, const ShardId& shard) {
  std::erase_if(slot.transfers, [&](const Transfer& t) { return t.shard == shard; });
}

Status SlotTable::BeginReceive(const ShardHeader& header) {
  PB_RETURN_IF_ERROR(Admit(header));
  Slot& slot = slots_[header.grant.slot];
  Transfer* transfer = FindTransfer(slot, header.shard);
  if (transfer != nullptr && transfer->lease != header.lease) {
    PB_RETURN_IF_ERROR(CheckNoTransfer(header));
    ForgetTransfer(slot, header.shard);
    transfer = nullptr;
  }
  if (transfer == nullptr) {
    if (slot.phase == SlotPhase::kFree) Bind(header.grant.slot, PositionOf(header.shard));
    transfer = &slot.transfers.emplace_back(Transfer{header.shard, header.lease, 0, 0, 0, false});
  }
  const std::uint32_t arrays = ArraysOf(header);
  if (transfer->failed) return FailedPrecondition(Name(header) + "another of its arrays failed");
  if ((transfer->begun & arrays) != 0) {
    return FailedPrecondition(Name(header) + "duplicate array");
  }
  transfer->begun |= arrays;
  ++transfer->running;
  return absl::OkStatus();
}

bool SlotTable::EndReceive(const ShardHeader& header, bool good) {
  PB_CHECK(header.grant.slot < slots_.size());
  Slot& slot = slots_[header.grant.slot];
  Transfer* transfer = FindTransfer(slot, header.shard);
  PB_CHECK(transfer != nullptr && transfer->lease == header.lease && transfer->running > 0);
  --transfer->running;
  if (good) transfer->landed |= ArraysOf(header);
  if (!good) transfer->failed = true;
  const bool whole = !transfer->failed && transfer->landed == AllArrays(header);
  if (whole) ForgetTransfer(slot, header.shard);
  EndRests();
  return whole;
}

bool SlotTable::Receiving(const ShardId& shard, const LeaseNumber& lease) const {
  for (const Slot& slot : slots_) {
    for (const Transfer& transfer : slot.transfers) {
      if (transfer.shard == shard && transfer.lease <= lease && transfer.running > 0) return true;
    }
  }
  return false;
}

StatusOr<Counted> SlotTable::Count(const ShardHeader& header) {
  PB_RETURN_IF_ERROR(Admit(header));
  PB_RETURN_IF_ERROR(CheckNoTransfer(header));
  const Position at = PositionOf(header.shard);
  Batch& batch = BatchAt(at);
  if (slots_[header.grant.slot].phase == SlotPhase::kFree) Bind(header.grant.slot, at);
  ForgetTransfer(slots_[header.grant.slot], header.shard);
  batch.shards[header.shard.shard].counted = true;
  ++batch.counted;
  Counted counted;
  if (*batch.slot != header.grant.slot) {
    counted.move =
        ShardMove{header.grant.slot, *batch.slot, header.grant.place, header.grant.count};
  }
  if (batch.counted == batch.shards.size()) {
    slots_[*batch.slot].phase = SlotPhase::kFull;
    counted.batch_full = true;
    EndRests();
  }
  return counted;
}

bool SlotTable::Fence(const ShardId& id, const LeaseNumber& lease) {
  const Position at = PositionOf(id);
  if (at < next_) return false;
  if (id.rank != options_.rank || !InWindow(at)) return true;
  if (id.shard >= ShardsInRank(options_.geometry, id.batch, id.rank)) return true;
  Shard& shard = BatchAt(at).shards[id.shard];
  if (shard.counted) return false;
  if (!shard.fenced.has_value() || *shard.fenced < lease) shard.fenced = lease;
  return true;
}

std::optional<std::uint32_t> SlotTable::WritableSlot(const ShardId& shard,
                                                     const Grant& grant) const {
  const Position at = PositionOf(shard);
  if (grant.count == 0) return SlotOf(at);
  if (grant.slot >= slots_.size()) return std::nullopt;
  const Slot& slot = slots_[grant.slot];
  if (slot.generation != grant.slot_generation || slot.phase == SlotPhase::kSpare) {
    return std::nullopt;
  }
  if (slot.phase != SlotPhase::kFree && slot.at != at) return std::nullopt;
  return grant.slot;
}

StatusOr<Evacuation> SlotTable::Evacuate(const ShardId& id, const Grant& grant) {
  const Position at = PositionOf(id);
  Evacuation out;
  if (!InWindow(at)) return out;
  out.resting_slot = WritableSlot(id, grant);
  if (!out.resting_slot.has_value()) return out;
  Slot& old_slot = slots_[*out.resting_slot];
  Batch& batch = BatchAt(at);
  if (old_slot.phase == SlotPhase::kResting) {
    ++old_slot.zombies;
    return out;
  }
  const bool holds_batch = batch.slot == out.resting_slot;
  if (batch.slot.has_value() && !holds_batch) return Evacuation{};
  const auto spare = std::find_if(slots_.begin(), slots_.end(),
                                  [](const Slot& s) { return s.phase == SlotPhase::kSpare; });
  if (spare == slots_.end()) {
    return ResourceExhausted("evacuate slot: batch ", at.ToString(), ": all ", options_.spares,
                             " spare slots rest already");
  }
  const auto to = static_cast<std::uint32_t>(spare - slots_.begin());
  for (std::uint32_t i = 0; i < batch.shards.size(); ++i) {
    if (!batch.shards[i].counted) continue;
    const PatchRun run = ShardRun(options_.geometry, id.batch, id.rank, i);
    out.moves.push_back(ShardMove{*out.resting_slot, to, run.place, run.count});
  }
  old_slot.phase = SlotPhase::kResting;
  old_slot.at = at;
  ++old_slot.zombies;
  batch.slot.reset();
  Bind(to, at);
  if (batch.counted == batch.shards.size()) slots_[to].phase = SlotPhase::kFull;
  return out;
}

bool SlotTable::Receives(const Slot& slot) {
  return std::any_of(slot.transfers.begin(), slot.transfers.end(),
                     [](const Transfer& transfer) { return transfer.running > 0; });
}

void SlotTable::ProveGone(std::uint32_t slot) {
  if (slot >= slots_.size() || slots_[slot].zombies == 0) return;
  --slots_[slot].zombies;
  EndRests();
}

/// Ends the rest of slots that no process can write to any more: every fenced holder is dead, no
/// transfer runs, and the batch is complete, so that no live lease writes there either.
void SlotTable::EndRests() {
  for (Slot& slot : slots_) {
    if (slot.phase != SlotPhase::kResting || slot.zombies > 0 || Receives(slot)) continue;
    const Batch* batch = FindBatch(slot.at);
    if (batch != nullptr && batch->counted < batch->shards.size()) continue;
    ++slot.generation;
    slot.transfers.clear();
    slot.phase = SlotPhase::kSpare;
  }
}

std::optional<std::uint32_t> SlotTable::FullSlot(Position at) const {
  const auto slot = SlotOf(at);
  if (slot.has_value() && slots_[*slot].phase == SlotPhase::kFull) return slot;
  return std::nullopt;
}

bool SlotTable::IsEmpty(Position at) const {
  return ShardsInRank(options_.geometry, at.batch, options_.rank) == 0;
}

void SlotTable::Take(Position at) {
  PB_CHECK(at == next());
  if (!IsEmpty(at)) {
    const auto slot = FullSlot(at);
    PB_CHECK(slot.has_value());
    slots_[*slot].phase = SlotPhase::kInUse;
  }
  batches_.erase(at);
  next_ = NextPosition(options_.geometry, at);
  EndRests();
}

bool SlotTable::Release(std::uint32_t slot, std::uint64_t generation) {
  if (slot >= slots_.size()) return false;
  Slot& s = slots_.at(slot);
  if (s.phase != SlotPhase::kInUse || s.generation != generation) return false;
  ++s.generation;
  s.transfers.clear();
  s.phase = SlotPhase::kFree;
  return true;
}

SlotReport SlotTable::Report(std::uint32_t slot) const {
  const Slot& s = slots_.at(slot);
  SlotReport report{slot, s.generation, s.phase, s.at, {}};
  if (s.phase == SlotPhase::kInUse) {
    report.counted.resize(ShardsInRank(options_.geometry, s.at.batch, options_.rank));
    for (std::uint32_t i = 0; i < report.counted.size(); ++i) report.counted[i] = i;
  } else if (s.phase == SlotPhase::kFilling || s.phase == SlotPhase::kFull) {
    const Batch* batch = FindBatch(s.at);
    for (std::uint32_t i = 0; i < batch->shards.size(); ++i) {
      if (batch->shards[i].counted) report.counted.push_back(i);
    }
  }
  return report;
}

std::vector<SlotReport> SlotTable::ReportAll() const {
  std::vector<SlotReport> reports;
  for (std::uint32_t i = 0; i < SlotCount(); ++i) reports.push_back(Report(i));
  return reports;
}

std::optional<std::uint32_t> SlotTable::SlotOf(Position at) const {
  const Batch* batch = FindBatch(at);
  return batch == nullptr ? std::nullopt : batch->slot;
}

bool SlotTable::Exhausted() const {
  return std::none_of(slots_.begin(), slots_.end(), [](const Slot& s) {
    return s.phase == SlotPhase::kFree || s.phase == SlotPhase::kFilling ||
           s.phase == SlotPhase::kFull;
  });
}

std::uint32_t SlotTable::SparesLeft() const {
  return static_cast<std::uint32_t>(std::count_if(
      slots_.begin(), slots_.end(), [](const Slot& s) { return s.phase == SlotPhase::kSpare; }));
}

SlotTable::Batch& SlotTable::BatchAt(Position at) {
  Batch& batch = batches_[at];
  if (batch.shards.empty()) {
    batch.shards.resize(ShardsInRank(options_.geometry, at.batch, options_.rank));
  }
  return batch;
}

const SlotTable::Batch* SlotTable::FindBatch(Position at) const {
  const auto it = batches_.find(at);
  return it == batches_.end() ? nullptr : &it->second;
}

void SlotTable::Bind(std::uint32_t slot, Position at) {
  slots_[slot].phase = SlotPhase::kFilling;
  slots_[slot].at = at;
  BatchAt(at).slot = slot;
}

}  // namespace patchbay::data
