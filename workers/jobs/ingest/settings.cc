#include "workers/jobs/ingest/settings.h"

#include <array>
#include <string_view>

#include "runtime/base/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "ingest settings";
constexpr std::array kKeys = {"chunk", "shard", "codec", "codec_level", "mpp", "keep_names"};
constexpr std::int64_t kChunkMin = 64, kChunkMax = 4096, kShardMax = 32768;

Status RefuseUnknownKeys(const Json& payload) {
  for (const auto& [key, value] : payload.items()) {
    bool known = false;
    for (const char* k : kKeys) known = known || key == k;
    if (!known) return absl::InvalidArgumentError(StrCat(kWhat, ": unknown key '", key, "'"));
  }
  return absl::OkStatus();
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
  if (s.mpp && !(*s.mpp > 0.0 && *s.mpp < 1000.0)) {
    return absl::InvalidArgumentError(StrCat(kWhat, ": mpp: ", *s.mpp, " is not in (0, 1000)"));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<IngestSettings> ParseIngestSettings(const Json& payload) {
  if (!payload.is_object()) return absl::InvalidArgumentError(StrCat(kWhat, ": not an object"));
  PB_RETURN_IF_ERROR(RefuseUnknownKeys(payload));
  IngestSettings s;
  if (payload.contains("chunk")) {
    PB_ASSIGN_OR_RETURN(s.chunk, JsonInt(payload, "chunk", kWhat));
  }
  if (payload.contains("shard")) {
    PB_ASSIGN_OR_RETURN(s.shard, JsonInt(payload, "shard", kWhat));
  }
  if (payload.contains("codec")) {
    PB_ASSIGN_OR_RETURN(s.codec, JsonString(payload, "codec", kWhat));
  }
  if (payload.contains("codec_level")) {
    PB_ASSIGN_OR_RETURN(s.codec_level, JsonInt(payload, "codec_level", kWhat));
  }
  if (payload.contains("keep_names")) {
    PB_ASSIGN_OR_RETURN(s.keep_names, JsonBool(payload, "keep_names", kWhat));
  }
  if (payload.contains("mpp") && !payload["mpp"].is_null()) {
    PB_ASSIGN_OR_RETURN(s.mpp, JsonDouble(payload, "mpp", kWhat));
  }
  PB_RETURN_IF_ERROR(CheckRanges(s));
  return s;
}

Json ToJson(const IngestSettings& s) {
  Json json = {{"chunk", s.chunk},
               {"shard", s.shard},
               {"codec", s.codec},
               {"codec_level", s.codec_level},
               {"keep_names", s.keep_names}};
  if (s.mpp) json["mpp"] = *s.mpp;
  return json;
}

std::string IngestSettings::Canonical() const {
  Json json = ToJson(*this);
  json.erase("keep_names");
  return DumpJson(json);
}

}  // namespace patchbay::workers
