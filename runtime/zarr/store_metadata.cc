#include "runtime/zarr/store_metadata.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/zarr/ngff.h"
#include "runtime/zarr/shard_list.h"

namespace patchbay::zarr {
namespace {

constexpr std::int64_t kMaxSidePx = std::int64_t{1} << 31;
constexpr std::int64_t kMaxChunksPerLevel = std::int64_t{1} << 24;
constexpr int kStoreFormat = 1;

Status Refuse(std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("write store metadata: ", cause));
}

Json CompressorOf(const ImageStoreSettings& s) {
  if (s.codec == StoreCodec::kZstd) {
    return {{"name", "zstd"}, {"configuration", {{"level", s.codec_level}, {"checksum", false}}}};
  }
  return {{"name", "blosc"},
          {"configuration",
           {{"cname", s.codec == StoreCodec::kBloscLz4 ? "lz4" : "zstd"},
            {"clevel", s.codec_level},
            {"shuffle", "noshuffle"},
            {"typesize", 1},
            {"blocksize", s.blosc_block_bytes}}}};
}

Json BytesCodec(bool one_byte) {
  if (one_byte) return {{"name", "bytes"}};
  return {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
}

Json ArrayDocument(const ImageStoreSettings& s, const LevelSize& level) {
  const Json inner =
      Json::array({Json{{"name", "transpose"}, {"configuration", {{"order", {1, 2, 0}}}}},
                   BytesCodec(SizeOf(s.dtype) == 1), CompressorOf(s), Json{{"name", "crc32c"}}});
  const Json sharding = {{"name", "sharding_indexed"},
                         {"configuration",
                          {{"chunk_shape", {s.channels, s.chunk_px, s.chunk_px}},
                           {"codecs", inner},
                           {"index_codecs", {BytesCodec(false), Json{{"name", "crc32c"}}}},
                           {"index_location", "end"}}}};
  return {{"zarr_format", 3},
          {"node_type", "array"},
          {"shape", {s.channels, level.height, level.width}},
          {"data_type", patchbay::NameOf(s.dtype)},
          {"chunk_grid",
           {{"name", "regular"},
            {"configuration", {{"chunk_shape", {s.channels, s.shard_px, s.shard_px}}}}}},
          {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
          {"fill_value", s.fill_value},
          {"codecs", Json::array({sharding})},
          {"dimension_names", {"c", "y", "x"}},
          {"attributes", Json::object()}};
}

Json AxesOf(const ImageStoreSpec& spec) {
  Json axes = Json::array({Json{{"name", "c"}, {"type", "channel"}}});
  const std::pair<const char*, const std::optional<double>*> space[] = {{"y", &spec.mpp_y},
                                                                        {"x", &spec.mpp_x}};
  for (const auto& [name, mpp] : space) {
    Json axis = {{"name", name}, {"type", "space"}};
    if (mpp->has_value()) axis["unit"] = "micrometer";
    axes.push_back(std::move(axis));
  }
  return axes;
}

Json DatasetsOf(const ImageStoreSpec& spec) {
  Json datasets = Json::array();
  const LevelSize& finest = spec.levels.front();
  for (std::size_t i = 0; i < spec.levels.size(); ++i) {
    const LevelSize& level = spec.levels[i];
    const double y = static_cast<double>(finest.height) / static_cast<double>(level.height);
    const double x = static_cast<double>(finest.width) / static_cast<double>(level.width);
    const Json scale = {
        {"type", "scale"},
        {"scale", {1.0, y * spec.mpp_y.value_or(1.0), x * spec.mpp_x.value_or(1.0)}}};
    datasets.push_back(
        {{"path", std::to_string(i)}, {"coordinateTransformations", Json::array({scale})}});
  }
  return datasets;
}

Json OmeroOf(const ImageStoreSettings& s) {
  static constexpr std::pair<const char*, const char*> kRgb[] = {
      {"red", "FF0000"}, {"green", "00FF00"}, {"blue", "0000FF"}};
  const int highest = s.dtype == DType::kUint8 ? 255 : 65535;
  Json channels = Json::array();
  for (int c = 0; c < s.channels; ++c) {
    const bool rgb = s.channels == 3;
    channels.push_back(
        {{"label", rgb ? std::string(kRgb[c].first) : StrCat("channel ", c)},
         {"color", rgb ? kRgb[c].second : "FFFFFF"},
         {"active", true},
         {"window", {{"min", 0}, {"max", highest}, {"start", 0}, {"end", highest}}}});
  }
  return {{"channels", channels}, {"rdefs", {{"model", s.channels == 1 ? "greyscale" : "color"}}}};
}

Status CheckSpec(const ImageStoreSpec& spec) {
  PB_RETURN_IF_ERROR(Validate(spec.settings));
  if (spec.levels.empty() || spec.levels.size() > kMaxLevels) {
    return Refuse(StrCat(spec.levels.size(), " levels are not 1 to ", kMaxLevels));
  }
  for (const LevelSize& level : spec.levels) {
    if (level.height < 1 || level.width < 1 || level.height > kMaxSidePx ||
        level.width > kMaxSidePx) {
      return Refuse(StrCat("a level of ", level.width, " x ", level.height, " pixels"));
    }
    const LevelSize chunks = ChunkGridOf(spec.settings, level);
    if (chunks.height > kMaxChunksPerLevel / chunks.width) {
      return Refuse(StrCat("a level of more than ", kMaxChunksPerLevel, " chunks"));
    }
  }
  for (const auto& mpp : {spec.mpp_y, spec.mpp_x}) {
    if (mpp && (!std::isfinite(*mpp) || *mpp <= 0)) return Refuse(StrCat("mpp ", *mpp));
  }
  if (!spec.attributes.is_object()) return Refuse("attributes are not an object");
  for (const auto& [key, value] : spec.attributes.items()) {
    const auto& allowed = AllowedAttributes();
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      return Refuse(StrCat("attribute '", key, "' is not on the list of what a store may say"));
    }
  }
  return absl::OkStatus();
}

void PutLine(Sha256& hash, std::string_view line) {
  hash.Update(line);
  hash.Update("\n");
}

}  // namespace

const std::vector<std::string>& AllowedAttributes() {
  static const std::vector<std::string> kAllowed = {
      "absent_tiles",  "affine_lps",      "codec_plan",   "deid_profile",
      "identity",      "levels_built",    "mpp",          "objective_power",
      "scanner_model", "slice_table_ref", "source_bytes", "source_compression",
      "source_kind",   "source_sha256",   "tool_version", "transform_log",
      "working_mpp"};
  return kAllowed;
}

StatusOr<MetadataDocuments> BuildMetadata(const ImageStoreSpec& spec) {
  PB_RETURN_IF_ERROR(CheckSpec(spec));
  MetadataDocuments out;
  for (std::size_t i = 0; i < spec.levels.size(); ++i) {
    out[StrCat(i, "/zarr.json")] = ArrayDocument(spec.settings, spec.levels[i]);
  }
  Json patchbay = spec.attributes;
  patchbay["format"] = kStoreFormat;
  const Json multiscale = {{"axes", AxesOf(spec)}, {"datasets", DatasetsOf(spec)}};
  out["zarr.json"] = {{"zarr_format", 3},
                      {"node_type", "group"},
                      {"attributes",
                       {{"ome",
                         {{"version", "0.5"},
                          {"multiscales", Json::array({multiscale})},
                          {"omero", OmeroOf(spec.settings)}}},
                        {"patchbay", patchbay}}}};
  return out;
}

Json WithoutIdentity(Json document) {
  if (!document.is_object()) return document;
  document.erase("consolidated_metadata");
  const auto attributes = document.find("attributes");
  if (attributes == document.end() || !attributes->is_object()) return document;
  const auto patchbay = attributes->find("patchbay");
  if (patchbay == attributes->end() || !patchbay->is_object()) return document;
  for (const char* key : {"digest", "pixel_digest", "identity"}) patchbay->erase(key);
  return document;
}

Digest LevelBytesNode(const std::vector<ShardLeaf>& leaves) {
  Sha256 hash;
  PutLine(hash, "patchbay level bytes 1");
  for (const ShardLeaf& leaf : leaves) {
    PutLine(hash, StrCat(leaf.row, "/", leaf.column, " ", leaf.digest.Hex()));
  }
  return hash.Finish();
}

Digest LevelPixelsNode(const ImageStoreSettings& settings, const LevelSize& level,
                       const std::vector<Digest>& chunks) {
  Sha256 hash;
  PutLine(hash,
          StrCat("patchbay level pixels 1 ", patchbay::NameOf(settings.dtype), " ",
                 settings.channels, " ", level.height, " ", level.width, " ", settings.chunk_px));
  for (const Digest& chunk : chunks) hash.Update(std::as_bytes(std::span(chunk.bytes)));
  return hash.Finish();
}

Digest BytesRoot(const MetadataDocuments& documents, const std::vector<Digest>& levels) {
  Sha256 hash;
  PutLine(hash, "patchbay store bytes 1");
  for (const auto& [path, document] : documents) {
    PutLine(hash, StrCat(path, " ", Sha256Of(DumpJson(WithoutIdentity(document))).Hex()));
  }
  for (const Digest& level : levels) PutLine(hash, level.Hex());
  return hash.Finish();
}

Digest PixelsRoot(const std::vector<Digest>& levels) {
  Sha256 hash;
  PutLine(hash, "patchbay store pixels 1");
  for (const Digest& level : levels) PutLine(hash, level.Hex());
  return hash.Finish();
}

namespace {

using FileWriter = Status (*)(const std::string& path, std::span<const std::byte> bytes,
                              unsigned mode);

Status WriteDocuments(const std::string& store, const ImageStoreSpec& spec, const StoreRoots& roots,
                      FileWriter write_file) {
  PB_ASSIGN_OR_RETURN(MetadataDocuments documents, BuildMetadata(spec));
  PB_RETURN_IF_ERROR(
      PutShardList(spec.settings, spec.levels, roots.levels, documents["zarr.json"]));
  Json& patchbay = documents["zarr.json"]["attributes"]["patchbay"];
  patchbay["digest"] = roots.bytes.Hex();
  patchbay["pixel_digest"] = roots.pixels.Hex();
  const auto write = [&](const std::string& path, const Json& document) -> Status {
    const std::string file = StrCat(store, "/", path);
    PB_RETURN_IF_ERROR(MakeDirectories(file.substr(0, file.rfind('/'))));
    const std::string text = document.dump(2) + "\n";
    return write_file(file, AsBytes(text), 0644);
  };
  for (const auto& [path, document] : documents) {
    if (path != "zarr.json") PB_RETURN_IF_ERROR(write(path, document));
  }
  return write("zarr.json", documents["zarr.json"]);
}

}  // namespace

Status WriteStoreMetadata(const std::string& store, const ImageStoreSpec& spec,
                          const StoreRoots& roots) {
  return WriteDocuments(store, spec, roots, WriteFileDurably);
}

Status DraftStoreMetadata(const std::string& store, const ImageStoreSpec& spec,
                          const StoreRoots& roots) {
  return WriteDocuments(store, spec, roots, ReplaceFile);
}

}  // namespace patchbay::zarr
