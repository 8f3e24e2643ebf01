#include "workers/jobs/ingest/settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "runtime/core/strings.h"
#include "workers/jobs/task/settings_json.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "ingest settings";
constexpr std::array kKeys = {"chunk",         "shard",        "codec",    "codec_level", "mpp",
                              "keep_names",    "volume_chunk", "geometry", "orientation", "spacing",
                              "spacing_order", "assume_mpp",   "tissue",   "nan"};
constexpr std::array<std::int64_t, 5> kVolumeChunks = {32, 48, 64, 96, 128};
/// um per pixel. A slide of more shows no tissue's structure: what is assumed was nanometres.
constexpr double kMaxMpp = 1000, kMaxAssumedMpp = 50;
constexpr double kMostNan = 1e6;
constexpr std::int64_t kChunkMin = 64, kChunkMax = 4096, kShardMax = 32768;

Status CheckMpp(std::string_view key, const std::optional<double>& mpp, double most) {
  if (!mpp || (*mpp > 0.0 && *mpp <= most)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(kWhat, ": ", key, ": ", *mpp, " is not above 0 and up to ", most, " um per pixel"));
}

Status CheckRanges(const IngestSettings& s) {
  if (s.chunk < kChunkMin || s.chunk > kChunkMax) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": chunk: ", s.chunk, " is not in ", kChunkMin, "..", kChunkMax));
  }
  if (s.shard < s.chunk || s.shard > kShardMax || s.shard % s.chunk != 0) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": shard: ", s.shard,
                                             " is not a multiple of chunk (", s.chunk, ") up to ",
                                             kShardMax));
  }
  if (s.codec != "zstd" && s.codec != "lz4") {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": codec: '", s.codec, "' is neither zstd nor lz4"));
  }
  if (s.codec_level < 1 || s.codec_level > 9) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": codec_level: ", s.codec_level, " is not in 1..9"));
  }
  if (std::find(kVolumeChunks.begin(), kVolumeChunks.end(), s.volume_chunk) ==
      kVolumeChunks.end()) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": volume_chunk: ", s.volume_chunk, " is none of 32, 48, 64, 96, 128"));
  }
  if (s.orientation != "canonical" && s.orientation != "source") {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": orientation: '", s.orientation, "' is neither canonical nor source"));
  }
  if (s.geometry != "refuse" && s.geometry != "resample" && s.geometry != "accept") {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": geometry: '", s.geometry, "' is none of refuse, resample, accept"));
  }
  if (s.spacing_order != 0 && s.spacing_order != 1 && s.spacing_order != 3) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": spacing_order: ", s.spacing_order, " is none of 0, 1, 3"));
  }
  constexpr std::array kProfiles = {"", "clam", "tiatoolbox", "histolab"};
  if (std::find(kProfiles.begin(), kProfiles.end(), s.tissue) == kProfiles.end()) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": tissue: '", s.tissue, "' is none of clam, tiatoolbox, histolab"));
  }
  if (s.nan && !(std::abs(*s.nan) <= kMostNan)) {
    return absl::InvalidArgumentError(
        StrCat(kWhat, ": nan: ", *s.nan, " is not in ", -kMostNan, "..", kMostNan));
  }
  PB_RETURN_IF_ERROR(CheckMpp("mpp", s.mpp, kMaxMpp));
  return CheckMpp("assume_mpp", s.assume_mpp, kMaxAssumedMpp);
}

}  // namespace

namespace {

constexpr double kSpacingMinMm = 0.1, kSpacingMaxMm = 100;

Status ReadSpacing(const Json& payload, IngestSettings& s) {
  if (!payload.contains("spacing") || payload["spacing"].is_null()) return absl::OkStatus();
  const Json& value = payload["spacing"];
  std::array<double, 3> spacing{};
  bool is_good = value.is_array() && value.size() == spacing.size();
  for (std::size_t i = 0; is_good && i < spacing.size(); ++i) {
    is_good = value[i].is_number();
    if (is_good) spacing[i] = value[i].get<double>();
    is_good = is_good && spacing[i] >= kSpacingMinMm && spacing[i] <= kSpacingMaxMm;
  }
  if (!is_good) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": spacing: not three numbers (z, y, x) of ",
                                             kSpacingMinMm, " to ", kSpacingMaxMm, " mm"));
  }
  s.spacing = spacing;
  return absl::OkStatus();
}

}  // namespace

StatusOr<IngestSettings> ParseIngestSettings(const Json& payload) {
  PB_RETURN_IF_ERROR(CheckSettingKeys(payload, kKeys, kWhat));
  IngestSettings s;
  PB_RETURN_IF_ERROR(ReadSetting(payload, "chunk", kWhat, s.chunk));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "shard", kWhat, s.shard));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "codec", kWhat, s.codec));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "codec_level", kWhat, s.codec_level));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "keep_names", kWhat, s.keep_names));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "tissue", kWhat, s.tissue));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "mpp", kWhat, s.mpp));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "assume_mpp", kWhat, s.assume_mpp));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "nan", kWhat, s.nan));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "volume_chunk", kWhat, s.volume_chunk));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "geometry", kWhat, s.geometry));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "orientation", kWhat, s.orientation));
  PB_RETURN_IF_ERROR(ReadSetting(payload, "spacing_order", kWhat, s.spacing_order));
  PB_RETURN_IF_ERROR(ReadSpacing(payload, s));
  PB_RETURN_IF_ERROR(CheckRanges(s));
  return s;
}

Json ToJson(const IngestSettings& s) {
  Json json = {{"chunk", s.chunk},
               {"shard", s.shard},
               {"codec", s.codec},
               {"codec_level", s.codec_level},
               {"keep_names", s.keep_names}};
  if (!s.tissue.empty()) json["tissue"] = s.tissue;
  if (s.mpp) json["mpp"] = *s.mpp;
  if (s.assume_mpp) json["assume_mpp"] = *s.assume_mpp;
  // Left out at their defaults, so that the names of what was made before they were there hold.
  if (s.volume_chunk != kVolumeChunk) json["volume_chunk"] = s.volume_chunk;
  if (s.geometry != "refuse") json["geometry"] = s.geometry;
  if (s.nan) json["nan"] = *s.nan;
  if (s.orientation != "canonical") json["orientation"] = s.orientation;
  if (s.spacing) {
    json["spacing"] = *s.spacing;
    json["spacing_order"] = s.spacing_order;
  }
  return json;
}

std::string IngestSettings::Canonical() const {
  Json json = ToJson(*this);
  json.erase("keep_names");
  json.erase("tissue");
  return DumpJson(json);
}

}  // namespace patchbay::workers
