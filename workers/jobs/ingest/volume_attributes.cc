#include "workers/jobs/ingest/volume_attributes.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "ops/zscore/body_mask.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/model/plan/value_histogram.h"
#include "runtime/model/plan/value_statistics.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/modality.h"
#include "runtime/os/available_memory.h"
#include "workers/jobs/task/identity.h"
#include "workers/jobs/task/volume_writer.h"
#include "workers/sources/volumes/voxel_values.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kShardSide = 256;
constexpr double kFillHu = -1024, kFillOther = 0;

Json SliceTable(const Volume& volume) {
  Json places = Json::array();
  for (const Vec3& p : volume.slice_positions) places.push_back({p.x, p.y, p.z});
  return {{"axis", std::string(1, volume.slice_axis)}, {"positions_lps_mm", std::move(places)}};
}

zarr::ImageStoreSettings VolumeStoreSettings(const IngestSettings& settings, DType dtype) {
  zarr::ImageStoreSettings store = zarr::VolumeSettings(dtype);
  const std::int64_t chunk = settings.volume_chunk;
  const std::int64_t shard = std::max<std::int64_t>(1, (kShardSide + chunk / 2) / chunk) * chunk;
  store.chunk = {chunk, chunk, chunk};
  store.shard = {shard, shard, shard};
  store.codec = zarr::StoreCodecFromName(settings.codec).value();
  store.codec_level = static_cast<int>(settings.codec_level);
  return store;
}

Status MayTake(std::uint64_t bytes) {
  return CheckMemoryFits("count values", bytes, AvailableMemory());
}

std::span<const std::int16_t> WholeValues(const Volume& volume) {
  return {reinterpret_cast<const std::int16_t*>(volume.voxels.data()),
          static_cast<std::size_t>(volume.size.Pixels())};
}

/// The histogram of the HU values inside the body; those of float32 rounded. ResourceExhausted
/// when the mask does not fit into memory.
StatusOr<plan::ValueHistogram> BodyHistogramOf(TaskContext& context, const Volume& volume) {
  std::vector<std::int16_t> rounded;
  if (volume.dtype == DType::kFloat32) {
    const auto* values = reinterpret_cast<const float*>(volume.voxels.data());
    rounded.resize(static_cast<std::size_t>(volume.size.Pixels()));
    PB_RETURN_IF_ERROR(MayTake(rounded.size() * sizeof rounded[0]));
    std::transform(values, values + rounded.size(), rounded.begin(), NearestInt16);
  }
  const std::span hu = rounded.empty() ? WholeValues(volume) : std::span(std::as_const(rounded));
  PB_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> body,
                      ops::BodyMask(hu, volume.size, MayTake, ProgressOf(context)));
  plan::ValueHistogram histogram;
  for (std::size_t i = 0; i < hu.size(); ++i) {
    if (body[i] != 0) histogram.Add(hu[i]);
  }
  return histogram;
}

/// Sorts with a call of `progress` every few million values.
Status SortValues(std::span<float> values, const VolumeProgress& progress) {
  constexpr std::size_t kSortedAtOnce = std::size_t{4} << 20;
  if (values.size() <= kSortedAtOnce) {
    std::sort(values.begin(), values.end());
    return progress();
  }
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half),
                   values.end());
  PB_RETURN_IF_ERROR(SortValues(values.first(half), progress));
  return SortValues(values.subspan(half), progress);
}

/// Adds the counts that zscore and percentile are computed from. ResourceExhausted when they do not
/// fit into memory.
Status CountValues(TaskContext& context, const Volume& volume, bool may_be_hu, Json& attributes) {
  if (volume.dtype == DType::kInt16) {
    plan::ValueHistogram histogram;
    for (const std::int16_t value : WholeValues(volume)) histogram.Add(value);
    attributes["value_histogram"] = histogram.ToJson();
  } else {
    PB_RETURN_IF_ERROR(MayTake(volume.voxels.size()));
    std::vector<float> values = FloatsOf(volume);
    PB_RETURN_IF_ERROR(SortValues(values, ProgressOf(context)));
    attributes["value_statistics"] = JsonOf(plan::FloatStatistics::Of(values));
  }
  if (!may_be_hu) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const plan::ValueHistogram body, BodyHistogramOf(context, volume));
  attributes["body_histogram"] = body.ToJson();
  return absl::OkStatus();
}

/// Records what differs from the source's own headers: these need no record.
void RecordModality(const std::optional<ModalityRecord>& modality, Json& attributes) {
  if (!modality) return;
  ModalityRecord record = *modality;
  const auto stated = RecordedModality(attributes);
  if (stated == static_cast<const Modality&>(record)) return;
  if (stated) record.stated = stated;
  attributes["modality"] = JsonOf(record);
}

/// The attributes of the values of a volume: of a store's only one, or of a channel.
StatusOr<Json> ValuesOf(TaskContext& context, const ReadChannel& channel) {
  Json a = Json::object();
  a["acquisition"] = channel.volume.facts;
  a["source_kind"] = channel.volume.kind;
  RecordModality(channel.planned->modality, a);
  const ValueRange range = RangeOf(channel.volume);
  a["value_range"] = JsonOf(zarr::RangeReport{range.min, range.max, range.mean});
  PB_RETURN_IF_ERROR(CountValues(context, channel.volume, channel.MayBeHu(), a));
  return a;
}

/// A channel records its modality also where its headers state it.
StatusOr<Json> ChannelOf(TaskContext& context, const ReadChannel& channel) {
  PB_ASSIGN_OR_RETURN(Json a, ValuesOf(context, channel));
  a["name"] = channel.planned->name;
  a["source_sha256"] = channel.source_sha256;
  a["transform_log"] = channel.volume.log;
  const auto known = RecordedModality(a);
  if (known && !a.contains("modality")) a["modality"] = JsonOf(ModalityRecord{*known, "header"});
  return a;
}

/// The modality that all channels have; null without one.
Json SharedModality(const Json& channels) {
  const auto first = RecordedModality(channels.front());
  for (const Json& channel : channels) {
    if (RecordedModality(channel) != first) return nullptr;
  }
  return first ? channels.front().at("modality") : Json();
}

/// The log of the first channel, by which places are taken back to its source, and the repairs of
/// the others.
Json LogOf(const std::vector<ReadChannel>& channels) {
  Json log = channels.front().volume.log;
  for (std::size_t i = 1; i < channels.size(); ++i) {
    for (const Json& step : channels[i].volume.log) {
      if (step.value("step", "") != "repair") continue;
      log.push_back({{"step", "repair"},
                     {"channel", channels[i].planned->name},
                     {"rule", step.at("rule")},
                     {"what", step.at("what")}});
    }
  }
  return log;
}

std::vector<std::string> ChannelWarningsOf(const std::vector<ReadChannel>& channels) {
  std::vector<std::string> warnings;
  for (const ReadChannel& channel : channels) {
    const std::string& name = channel.planned->name;
    for (const std::string& warning : channel.volume.warnings) {
      warnings.push_back(name.empty() ? warning : StrCat("channel '", name, "': ", warning));
    }
  }
  return warnings;
}

/// The attributes of the values: of one volume at the top, of channels under each.
Status RecordValues(TaskContext& context, const std::vector<ReadChannel>& channels,
                    zarr::ImageStoreSpec& spec) {
  if (channels.size() == 1) {
    PB_ASSIGN_OR_RETURN(const Json values, ValuesOf(context, channels.front()));
    spec.attributes.update(values);
    return absl::OkStatus();
  }
  Json& list = spec.attributes[kChannelsKey] = Json::array();
  for (const ReadChannel& channel : channels) {
    PB_ASSIGN_OR_RETURN(Json one, ChannelOf(context, channel));
    list.push_back(std::move(one));
    spec.channel_names.push_back(channel.planned->name);
  }
  const Json shared = SharedModality(list);
  if (!shared.is_null()) spec.attributes["modality"] = shared;
  spec.attributes["source_kind"] = channels.front().volume.kind;
  return absl::OkStatus();
}

/// The identity of the first channel, with the series of all of them.
Json IdentityOfAll(const std::string& key, const std::vector<ReadChannel>& channels) {
  Json identity = IdentityOf(key, channels.front().volume.identity);
  std::set<Json> series;
  for (const ReadChannel& channel : channels) {
    const Json one = IdentityOf(key, channel.volume.identity);
    if (one.contains("series")) series.insert(one["series"]);
  }
  if (series.size() > 1) identity["series"] = series;
  return identity;
}

}  // namespace

bool ReadChannel::MayBeHu() const {
  Json own = {{"acquisition", volume.facts}};
  RecordModality(planned->modality, own);
  const auto modality = RecordedModality(own);
  return !modality || modality->IsHu();
}

StatusOr<zarr::ImageStoreSpec> VolumeSpecOf(TaskContext& context, const IngestTask& task,
                                            const std::vector<ReadChannel>& channels,
                                            const SlideOutcome& outcome) {
  const IngestSettings& settings = task.settings;
  const Volume& first = channels.front().volume;
  zarr::ImageStoreSpec spec;
  spec.settings = VolumeStoreSettings(settings, first.dtype);
  if (channels.size() > 1) {
    spec.settings.axes = zarr::StoreAxes::kCzyx;
    spec.settings.channels = static_cast<int>(channels.size());
  }
  spec.levels = VolumeLevels(first.size, spec.settings);
  spec.spacing = first.SpacingMm();
  const bool may_be_hu = std::all_of(channels.begin(), channels.end(),
                                     [](const ReadChannel& one) { return one.MayBeHu(); });
  spec.settings.fill_value = may_be_hu ? kFillHu : kFillOther;
  Json& a = spec.attributes;
  a["source_sha256"] = outcome.source_sha256;
  a["source_bytes"] = outcome.source_bytes;
  a["codec_plan"] = ParseJson(settings.Canonical(), "settings").value();
  a["affine_lps"] = ToJson(LpsOf(first.affine));
  a["affine_ras"] = ToJson(RasOf(first.affine));
  a["orientation"] = OrientationOf(first.affine);
  a["transform_log"] = LogOf(channels);
  a["deid_profile"] = "allow-list";
  const std::vector<std::string> warnings = ChannelWarningsOf(channels);
  if (!warnings.empty()) a["warnings"] = warnings;
  PB_RETURN_IF_ERROR(RecordValues(context, channels, spec));
  if (!first.slice_positions.empty()) a["slice_table"] = SliceTable(first);
  const Json identity = IdentityOfAll(task.manifest.pseudonym_key, channels);
  if (!identity.empty()) a["identity"] = identity;
  return spec;
}

}  // namespace patchbay::workers
