#include "runtime/client/handover.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/format/json/json_forms.h"
#include "runtime/model/stream/slot_layout.h"

namespace patchbay::client {
namespace {

constexpr std::int64_t kHandoverLookMs = 100;
constexpr std::uint32_t kTakenAhead = 1;  ///< batches that wait for the trainer to take them

EntryState StateOf(const HandoverEntry& entry) {
  return static_cast<EntryState>(entry.state.load(std::memory_order_acquire));
}

void SetState(HandoverEntry& entry, EntryState state) {
  entry.state.store(static_cast<std::uint32_t>(state), std::memory_order_release);
}

StatusOr<SlotLayout> LayoutOf(const Stream& stream) {
  return SlotLayout::Of(stream.layout(), Capacity(stream.geometry()),
                        stream.ring_memory().device() != nullptr);
}

std::string HexOf(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text.push_back(kDigits[std::to_integer<unsigned>(byte) >> 4]);
    text.push_back(kDigits[std::to_integer<unsigned>(byte) & 15]);
  }
  return text;
}

/// The values with which another process of this machine maps the device's memory.
Json DescribeDevice(const memory::DeviceBlockHandle& handle, const SlotLayout& slot) {
  return {{"uuid", handle.gpu_uuid},
          {"handle", HexOf(handle.ipc)},
          {"bytes", handle.size_bytes},
          {"slot_bytes", slot.device_stride()}};
}

}  // namespace

StatusOr<std::unique_ptr<RingHandover>> RingHandover::Start(Run& run) {
  PB_ASSIGN_OR_RETURN(memory::MemfdBlock memory,
                      memory::MemfdBlock::Create("patchbay-handover", sizeof(Handover)));
  PB_ASSIGN_OR_RETURN(const SlotLayout slot, LayoutOf(*run.stream));
  const std::uint64_t stride = slot.device_stride() > 0 ? slot.device_stride() : slot.host_stride();
  std::unique_ptr<RingHandover> handover(new RingHandover(run, std::move(memory), stride));
  handover->taker_ = std::thread([self = handover.get()] { self->TakeBatches(); });
  handover->releaser_ = std::thread([self = handover.get()] { self->ReleaseBatches(); });
  return handover;
}

RingHandover::RingHandover(Run& run, memory::MemfdBlock memory, std::uint64_t slot_stride)
    : run_(run),
      memory_(std::move(memory)),
      slot_stride_(slot_stride),
      shared_(new (memory_.data()) Handover) {}

RingHandover::~RingHandover() {
  if (taker_.joinable()) End();
}

void RingHandover::End() {
  ending_ = true;
  WakeWord(shared_->taken);
  WakeWord(shared_->released);
  taker_.join();
  releaser_.join();
  // Ends every wait on this ring that is still open, as after a failed attempt to open another in
  // its place.
  if (shared_->failed.load() == 0) {
    Fail(Unavailable(
        "next batch: the client process has left this stream: attach again with the last state"));
  }
}

RetiredRing RingHandover::Retire() {
  End();
  // Batches that were published and not taken never will be: the other process has left this ring.
  const std::uint32_t published = shared_->published.load();
  for (std::uint32_t at = shared_->taken.load(); at != published; ++at) {
    held_[shared_->order[at % kHandoverEntries]].Release();
  }
  std::vector<std::pair<std::uint32_t, Batch>> batches;
  for (std::uint32_t i = 0; i < kHandoverEntries; ++i) {
    if (held_[i].count() > 0) batches.emplace_back(i, std::move(held_[i]));
  }
  return {std::move(memory_), std::move(batches)};
}

bool RetiredRing::Done() {
  const auto* shared = reinterpret_cast<const Handover*>(memory_.data());
  std::erase_if(batches_, [&](const auto& held) {
    return StateOf(shared->entries[held.first]) == EntryState::kReleased;
  });
  return batches_.empty();
}

/// True once the trainer has taken the published batch; false at the end.
bool RingHandover::AwaitDemand() {
  while (!ending_) {
    const std::uint32_t taken = shared_->taken.load(std::memory_order_acquire);
    if (shared_->published.load() - taken < kTakenAhead) return true;
    WaitOnWord(shared_->taken, taken, kHandoverLookMs);
  }
  return false;
}

StatusOr<Batch> RingHandover::TakeNext() {
  while (!ending_) {
    StatusOr<Batch> batch = run_.stream->Next(kHandoverLookMs);
    if (!absl::IsDeadlineExceeded(batch.status())) return batch;
    PB_RETURN_IF_ERROR(run_.cluster->Alive());
  }
  return Cancelled("the stream was closed");
}

void RingHandover::TakeBatches() {
  while (AwaitDemand()) {
    StatusOr<Batch> batch = TakeNext();
    if (ending_) return;
    if (!batch.ok()) return Fail(run_.Explain(batch.status()));
    Publish(*std::move(batch));
  }
}

void RingHandover::Publish(Batch batch) {
  const auto free = std::find_if(std::begin(shared_->entries), std::end(shared_->entries),
                                 [](const auto& e) { return StateOf(e) == EntryState::kFree; });
  if (free == std::end(shared_->entries)) {
    return Fail(ResourceExhausted("next batch: too many batches are held"));
  }
  HandoverEntry& entry = *free;
  entry.epoch = batch.epoch();
  entry.batch = batch.index();
  entry.unit = batch.unit() ? batch.unit()->number : 0;
  entry.unit_patches = batch.unit() ? batch.unit()->patches : 0;
  entry.count = batch.count();
  entry.real_count = batch.real_count();
  entry.has_slot = batch.count() > 0 ? 1 : 0;
  entry.slot = entry.has_slot != 0 ? SlotOf(batch) : 0;
  const auto index = static_cast<std::uint32_t>(free - std::begin(shared_->entries));
  held_[index] = std::move(batch);
  SetState(entry, EntryState::kHeld);
  const std::uint32_t at = shared_->published.load();
  shared_->order[at % kHandoverEntries] = index;
  shared_->published.store(at + 1, std::memory_order_release);
  CopyCounters();
  RaiseWord(shared_->ready);
}

/// The first array, an image, lies where the slot begins.
std::uint32_t RingHandover::SlotOf(const Batch& batch) const {
  const data::RingMemory& memory = run_.stream->ring_memory();
  const std::byte* const begin = batch.on_device() ? memory.device() : memory.host().data();
  const auto* slot = static_cast<const std::byte*>(batch.arrays().front().tensor.data);
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(slot - begin) / slot_stride_);
}

void RingHandover::CopyCounters() {
  const StreamStats stats = run_.stream->stats();
  HandoverCounters& counters = shared_->counters;
  counters.shards_refused = stats.shards_refused;
  counters.shards_corrupt = stats.shards_corrupt;
  counters.batches_moved = stats.batches_moved;
  counters.remote_bytes = stats.remote_bytes;
  counters.storage_us = stats.stages.storage_us;
  counters.decode_us = stats.stages.decode_us;
  counters.transform_us = stats.stages.transform_us;
  counters.transfer_us = stats.stages.transfer_us;
  counters.stage_patches = stats.stages.patches;
}

void RingHandover::Fail(const Status& status) {
  const std::string text = DumpJson(DescribeError(status));
  std::memcpy(shared_->error, text.c_str(), text.size() + 1);
  shared_->failed.store(1, std::memory_order_release);
  RaiseWord(shared_->ready);
}

void RingHandover::ReleaseBatches() {
  while (!ending_) {
    const std::uint32_t released = shared_->released.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < kHandoverEntries; ++i) {
      if (StateOf(shared_->entries[i]) != EntryState::kReleased) continue;
      held_[i].Release();
      SetState(shared_->entries[i], EntryState::kFree);
    }
    WaitOnWord(shared_->released, released, kHandoverLookMs);
  }
}

namespace {

/// Remarks for the user, as many as fit into a message.
std::vector<std::string> NoticesOf(const RunFile& run) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> notices = run.notices;
  for (std::string& leak : run.LeakNotices()) notices.push_back(std::move(leak));
  if (notices.size() > kMost) {
    const std::size_t more = notices.size() - kMost;
    notices.resize(kMost);
    notices.push_back(StrCat("and ", more, " more: `patchbay config check` lists them"));
  }
  return notices;
}

}  // namespace

Json DescribeError(const Status& status) {
  const Subject whole = OutcomeOf(status).subject;
  Json error;
  std::size_t most = kHandoverErrorBytes;  // a byte may take several as JSON
  do {
    most /= 2;
    Subject subject = whole;
    subject.part.resize(std::min(subject.part.size(), most / 2));
    error = {{"code", static_cast<int>(status.code())},
             {"config", IsConfigFault(status)},
             {"text", MessageOf(status).substr(0, most)},
             {"subject", JsonOf(subject)}};
  } while (DumpJson(error).size() >= kHandoverErrorBytes);
  return error;
}

StatusOr<Json> DescribeRing(const Run& run) {
  const Stream& stream = *run.stream;
  PB_ASSIGN_OR_RETURN(const SlotLayout slot, LayoutOf(stream));
  Json arrays = Json::array();
  for (std::size_t i = 0; i < stream.layout().arrays.size(); ++i) {
    const ArrayLayout& array = stream.layout().arrays[i];
    arrays.push_back(
        {{"name", array.name},
         {"dtype", NameOf(array.dtype)},
         {"shape", array.shape},
         {"on_device", slot.OnDevice(i)},
         {"offset",
          (slot.OnDevice(i) ? slot.InDevice(i, 0, 0) : slot.InHost(i, 0, 0)).offset_bytes}});
  }
  Json description{{"job", run.job},
                   {"batches_per_epoch", stream.batches_per_epoch()},
                   {"global_batch", stream.geometry().global_batch},
                   {"world_size", stream.geometry().world_size},
                   {"tail", NameOf(stream.geometry().tail)},
                   {"capacity", slot.capacity()},
                   {"arrays", arrays},
                   {"ring_bytes", stream.ring_bytes()},
                   {"slot_bytes", slot.host_stride()},
                   {"slots", run.file.config.prefetch + 2},
                   {"images", run.images.size()},
                   {"skipped", run.skipped.count},
                   {"notices", NoticesOf(run.file)},
                   {"embedded", run.cluster->embedded()},
                   {"plan_digest", stream.plan_digest().Hex()},
                   {"resume_token", stream.ResumeToken()}};
  if (plan::IsMap(run.file.config)) {
    description["plan"] = stream.plan_digest().Hex();
    description["units"] = stream.geometry().units.units();
    std::size_t mapped = 0;  // images without patches have no unit
    for (std::size_t i = 0; i < run.images.size(); ++i) {
      mapped += run.first_units[i + 1] > run.first_units[i] ? 1 : 0;
    }
    description["mapped_images"] = mapped;
    description["outputs"] = run.file.config.outputs;
    description["weights"] = run.file.config.weights;
  }
  if (const auto handle = stream.ring_memory().device_handle(); handle.has_value()) {
    description["device"] = DescribeDevice(*handle, slot);
  }
  return description;
}

/// Null where the channels have no names, or there is one.
Json DescribeChannels(const std::vector<results::ChannelFacts>& channels) {
  if (channels.empty()) return Json();
  Json list = Json::array();
  for (const results::ChannelFacts& channel : channels) {
    const std::optional<Modality>& modality = channel.modality;
    list.push_back({{"name", channel.name},
                    {"modality", modality ? Json(modality->name) : Json()},
                    {"unit", modality ? Json(modality->unit) : Json()}});
  }
  return list;
}

/// Every member is present, null if unknown, so that a column of the table is never mistaken for a
/// fact.
Json DescribeFacts(const results::ImageFacts& facts) {
  Json sizes = Json::array();
  for (const Extent& level : facts.levels) sizes.push_back({level.z, level.y, level.x});
  const auto known = [](const auto& value) { return value ? Json(*value) : Json(); };
  return {{"level_sizes", std::move(sizes)},
          {"downsamples", facts.Downsamples()},
          {"mpp", known(facts.mpp)},
          {"stated_mpp", known(facts.mpp_corrected ? facts.stated_mpp : facts.mpp)},
          {"spacing", known(facts.spacing_mm)},
          {"affine", known(facts.affine)},
          {"modality", facts.modality ? Json(facts.modality->name) : Json()},
          {"unit", facts.modality ? Json(facts.modality->unit) : Json()},
          {"channels", DescribeChannels(facts.channels)}};
}

/// One of the two numbers of each channel: a number of one channel, a list of several; null: none.
template <typename Number>
Json DescribeNumbers(const std::vector<std::pair<double, double>>& channels, Number number) {
  if (channels.empty()) return Json();
  if (channels.size() == 1) return channels[0].*number;
  Json list = Json::array();
  for (const auto& one : channels) list.push_back(one.*number);
  return list;
}

Json DescribeImages(const Run& run, std::size_t first, std::size_t count) {
  Json rows = Json::array();
  const std::size_t end =
      first + std::min(count, run.images.size() - std::min(first, run.images.size()));
  for (std::size_t i = first; i < end; ++i) {
    const ImageRecord& record = run.records[i];
    Json row = Json::object();
    for (const auto& [name, cell] : record.columns) row[name] = cell;
    row.update(DescribeFacts(record.facts));
    row["digest"] = record.digest.Hex();
    using Numbers = std::pair<double, double>;
    const auto put = [&row](const auto& numbers, const char* one, const char* other) {
      row[one] = DescribeNumbers(numbers, &Numbers::first);
      row[other] = DescribeNumbers(numbers, &Numbers::second);
    };
    put(record.zscore, "mean", "std");
    put(record.percentiles, "low", "high");
    row["path"] = run.images[i];
    row["slide_id"] = record.slide_id;
    if (!record.split.empty()) row["split"] = record.split;
    if (!run.first_units.empty()) {
      row["units"] = {run.first_units[i], run.first_units[i + 1] - run.first_units[i]};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace patchbay::client
