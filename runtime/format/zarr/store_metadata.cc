#include "runtime/format/zarr/store_metadata.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/codec/tile_codec.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/os/file.h"

namespace patchbay::zarr {
namespace {

constexpr std::int64_t kMaxChunksPerLevel = std::int64_t{1} << 24;
constexpr int kStoreFormat = 2;

Status RefuseSpec(std::string_view cause) {
  return InvalidArgument("write store metadata: ", cause);
}

/// Elements of several bytes are shuffled: the high bytes of neighbours are alike.
Json CompressorOf(const ImageStoreSettings& s) {
  if (s.codec == StoreCodec::kZstd) {
    return {{"name", "zstd"}, {"configuration", {{"level", s.codec_level}, {"checksum", false}}}};
  }
  const std::size_t element = SizeOf(s.dtype);
  return {{"name", "blosc"},
          {"configuration",
           {{"cname", s.codec == StoreCodec::kBloscLz4 ? "lz4" : "zstd"},
            {"clevel", s.codec_level},
            {"shuffle", element == 1 ? "noshuffle" : "shuffle"},
            {"typesize", element},
            {"blocksize", s.blosc_block_bytes}}}};
}

Json BytesCodec(bool one_byte) {
  if (one_byte) return {{"name", "bytes"}};
  return {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
}

/// An extent along the array's axes, of so many channels where it has an axis of them.
Json Along(const ImageStoreSettings& s, const Extent& e, int channels) {
  switch (s.axes) {
    case StoreAxes::kZyx:
      return {e.z, e.y, e.x};
    case StoreAxes::kCzyx:
      return {channels, e.z, e.y, e.x};
    case StoreAxes::kCyx:
      break;
  }
  return {channels, e.y, e.x};
}

Json AxisNames(const ImageStoreSettings& s) {
  switch (s.axes) {
    case StoreAxes::kZyx:
      return {"z", "y", "x"};
    case StoreAxes::kCzyx:
      return {"c", "z", "y", "x"};
    case StoreAxes::kCyx:
      break;
  }
  return {"c", "y", "x"};
}

Json FillJson(const ImageStoreSettings& s) {
  if (s.dtype == DType::kFloat32) return static_cast<double>(static_cast<float>(s.fill_value));
  return static_cast<std::int64_t>(s.fill_value);
}

/// `tile`: the format of a level whose chunks are tiles.
Json ArrayDocument(const ImageStoreSettings& s, const Extent& level,
                   const tiles::TileFormat* tile) {
  Json inner = Json::array();
  if (s.axes == StoreAxes::kCyx) {
    inner.push_back({{"name", "transpose"}, {"configuration", {{"order", {1, 2, 0}}}}});
  }
  if (tile != nullptr) {
    inner.push_back(ToJson(*tile, s.channels));
  } else {
    inner.push_back(BytesCodec(SizeOf(s.dtype) == 1));
    inner.push_back(CompressorOf(s));
  }
  inner.push_back({{"name", "crc32c"}});
  const Json sharding = {{"name", "sharding_indexed"},
                         {"configuration",
                          {{"chunk_shape", Along(s, s.chunk, s.ChunkChannels())},
                           {"codecs", inner},
                           {"index_codecs", {BytesCodec(false), Json{{"name", "crc32c"}}}},
                           {"index_location", "end"}}}};
  return {{"zarr_format", 3},
          {"node_type", "array"},
          {"shape", Along(s, level, s.channels)},
          {"data_type", patchbay::NameOf(s.dtype)},
          {"chunk_grid",
           {{"name", "regular"},
            {"configuration", {{"chunk_shape", Along(s, s.shard, s.ChunkChannels())}}}}},
          {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
          {"fill_value", FillJson(s)},
          {"codecs", Json::array({sharding})},
          {"dimension_names", AxisNames(s)},
          {"attributes", Json::object()}};
}

/// One of the store's axes in space.
struct SpaceAxis {
  const char* name;
  const std::optional<AxisSpacing>& spacing;
  std::int64_t Extent::*side;
};

bool HasChannelAxis(const ImageStoreSettings& s) { return s.axes != StoreAxes::kZyx; }

std::vector<SpaceAxis> SpaceAxesOf(const ImageStoreSpec& spec) {
  std::vector<SpaceAxis> axes;
  if (spec.settings.IsVolume()) axes.push_back({"z", spec.spacing.z, &Extent::z});
  axes.push_back({"y", spec.spacing.y, &Extent::y});
  axes.push_back({"x", spec.spacing.x, &Extent::x});
  return axes;
}

Json NgffAxesOf(const ImageStoreSpec& spec) {
  Json axes = Json::array();
  if (HasChannelAxis(spec.settings)) axes.push_back({{"name", "c"}, {"type", "channel"}});
  for (const SpaceAxis& along : SpaceAxesOf(spec)) {
    Json axis = {{"name", along.name}, {"type", "space"}};
    if (along.spacing) axis["unit"] = patchbay::NameOf(along.spacing->unit);
    axes.push_back(std::move(axis));
  }
  return axes;
}

double Ratio(std::int64_t finer, std::int64_t coarser) {
  return static_cast<double>(finer) / static_cast<double>(coarser);
}

/// The downsample of a volume's level. Levels are halved one by one: a side is rounded up, but the
/// step from voxel to voxel doubles; where one voxel is left it stays.
double HalvedAlong(const std::vector<Extent>& levels, std::size_t level,
                   std::int64_t Extent::*side) {
  double steps = 1;
  for (std::size_t i = 1; i <= level; ++i) {
    const std::int64_t finer = levels[i - 1].*side, coarser = levels[i].*side;
    const bool is_half = coarser == HalfOf(levels[i - 1]).*side;
    steps *= is_half ? (finer > 1 ? 2 : 1) : Ratio(finer, coarser);
  }
  return steps;
}

/// Against level 0.
double DownsampleAlong(const ImageStoreSpec& spec, std::size_t level, std::int64_t Extent::*side) {
  if (spec.settings.IsVolume()) return HalvedAlong(spec.levels, level, side);
  if (!spec.downsamples.empty()) return spec.downsamples[level][side == &Extent::y ? 0 : 1];
  return Ratio(spec.levels.front().*side, spec.levels[level].*side);
}

Json DatasetsOf(const ImageStoreSpec& spec) {
  Json datasets = Json::array();
  for (std::size_t i = 0; i < spec.levels.size(); ++i) {
    const bool is_volume = spec.settings.IsVolume();
    Json factors = Json::array(), shifts = Json::array();
    if (HasChannelAxis(spec.settings)) {
      factors.push_back(1.0);
      shifts.push_back(0.0);
    }
    for (const SpaceAxis& along : SpaceAxesOf(spec)) {
      const double step = along.spacing ? along.spacing->value : 1.0;
      const double steps = DownsampleAlong(spec, i, along.side);
      factors.push_back(steps * step);
      shifts.push_back((steps - 1) / 2 * step);  // the first voxel's centre is that of its block
    }
    Json transforms = Json::array();
    transforms.push_back({{"type", "scale"}, {"scale", std::move(factors)}});
    if (is_volume) {
      transforms.push_back({{"type", "translation"}, {"translation", std::move(shifts)}});
    }
    datasets.push_back(
        {{"path", std::to_string(i)}, {"coordinateTransformations", std::move(transforms)}});
  }
  return datasets;
}

/// The window that viewers show at first: all of an integer type's range, for signed and real
/// values the abdominal soft tissue of a CT.
Json WindowOf(DType dtype) {
  if (dtype == DType::kInt16 || dtype == DType::kFloat32) {
    return {{"min", -1024}, {"max", 3071}, {"start", -160}, {"end", 240}};
  }
  const int highest = dtype == DType::kUint8 ? 255 : 65535;
  return {{"min", 0}, {"max", highest}, {"start", 0}, {"end", highest}};
}

/// Colours in which viewers mix named channels: the first is most often the stain of nuclei.
std::string MixedColor(std::size_t channel) {
  static constexpr const char* kMixed[] = {"0000FF", "00FF00", "FF0000", "FFFF00",
                                           "FF00FF", "00FFFF", "FF8000", "FFFFFF"};
  return kMixed[channel % std::size(kMixed)];
}

Json OmeroOf(const ImageStoreSpec& spec) {
  const ImageStoreSettings& s = spec.settings;
  static constexpr std::pair<const char*, const char*> kRgb[] = {
      {"red", "FF0000"}, {"green", "00FF00"}, {"blue", "0000FF"}};
  const bool is_mixed = s.axes == StoreAxes::kCyx && s.channels > 1 && !spec.channel_names.empty();
  Json channels = Json::array();
  for (int c = 0; c < s.channels; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const bool rgb = s.channels == 3 && !s.IsVolume();
    const std::string label = at < spec.channel_names.size() ? spec.channel_names[at]
                              : rgb                          ? std::string(kRgb[c].first)
                                                             : StrCat("channel ", c);
    channels.push_back({{"label", label},
                        {"color", is_mixed ? MixedColor(at)
                                  : rgb    ? kRgb[c].second
                                           : "FFFFFF"},
                        {"active", true},
                        {"window", WindowOf(s.dtype)}});
  }
  const bool is_grey = s.channels == 1 || s.IsVolume();
  return {{"channels", channels}, {"rdefs", {{"model", is_grey ? "greyscale" : "color"}}}};
}

Status CheckLevel(const ImageStoreSettings& settings, const Extent& level) {
  if (level.Empty() || level.z > kMaxLevelSide || level.y > kMaxLevelSide ||
      level.x > kMaxLevelSide) {
    return RefuseSpec(StrCat("a level of ", level.ToString(), " pixels"));
  }
  if (settings.axes == StoreAxes::kCyx && level.z != 1) {
    return RefuseSpec(StrCat("a 2-D image of ", level.z, " slices"));
  }
  const Extent chunks = ChunkGridOf(settings, level);
  if (chunks.y > kMaxChunksPerLevel / chunks.x ||
      chunks.z > kMaxChunksPerLevel / settings.Planes() / (chunks.y * chunks.x)) {
    return RefuseSpec(StrCat("a level of more than ", kMaxChunksPerLevel, " chunks"));
  }
  return absl::OkStatus();
}

Status CheckSpec(const ImageStoreSpec& spec) {
  PB_RETURN_IF_ERROR(Validate(spec.settings));
  if (spec.levels.empty() || spec.levels.size() > kMaxLevels) {
    return RefuseSpec(StrCat(spec.levels.size(), " levels are not 1 to ", kMaxLevels));
  }
  const std::size_t names = spec.channel_names.size();
  if (names != 0 && names != static_cast<std::size_t>(spec.settings.channels)) {
    return RefuseSpec(StrCat(names, " names of ", spec.settings.channels, " channels"));
  }
  const bool is_kept = spec.settings.codec == StoreCodec::kKeep;
  if (spec.tiles.size() != (is_kept ? spec.levels.size() : 0)) {
    return RefuseSpec(
        StrCat(spec.tiles.size(), " formats of tiles for ", spec.levels.size(), " levels"));
  }
  for (const Extent& level : spec.levels) PB_RETURN_IF_ERROR(CheckLevel(spec.settings, level));
  for (const SpaceAxis& along : SpaceAxesOf(spec)) {
    if (along.spacing && (!std::isfinite(along.spacing->value) || along.spacing->value <= 0)) {
      return RefuseSpec(StrCat("spacing ", along.spacing->value, " along ", along.name));
    }
  }
  if (!spec.attributes.is_object()) return RefuseSpec("attributes are not an object");
  for (const auto& [key, value] : spec.attributes.items()) {
    const auto& allowed = AllowedAttributes();
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
      return RefuseSpec(StrCat("attribute '", key, "' is not allowed in a store"));
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
  static const std::vector<std::string> kAllowed = {"absent_tiles",     "acquisition",
                                                    "affine_lps",       "affine_ras",
                                                    "body_histogram",   "channels",
                                                    "codec_plan",       "deid_profile",
                                                    "icc_to_srgb",      "identity",
                                                    "labels",           "levels_built",
                                                    "modality",         "mpp",
                                                    "mpp_assumed",      "objective_power",
                                                    "orientation",      "pixel_digest_of",
                                                    "scanner_model",    "slice_table",
                                                    "slice_table_ref",  "source_bounds",
                                                    "source_bytes",     "source_compression",
                                                    "source_kind",      "source_sha256",
                                                    "source_size",      "stain",
                                                    "stain_facts",      "stain_srgb",
                                                    "stain_srgb_facts", "tool_version",
                                                    "transform_log",    "value_histogram",
                                                    "value_range",      "value_statistics",
                                                    "warnings",         "working_mpp"};
  return kAllowed;
}

StatusOr<MetadataDocuments> BuildMetadata(const ImageStoreSpec& spec) {
  PB_RETURN_IF_ERROR(CheckSpec(spec));
  MetadataDocuments out;
  for (std::size_t i = 0; i < spec.levels.size(); ++i) {
    out[StrCat(i, "/zarr.json")] =
        ArrayDocument(spec.settings, spec.levels[i], spec.tiles.empty() ? nullptr : &spec.tiles[i]);
  }
  Json patchbay = spec.attributes;
  patchbay["format"] = kStoreFormat;
  const Json multiscale = {{"axes", NgffAxesOf(spec)}, {"datasets", DatasetsOf(spec)}};
  Json ome = {{"version", "0.5"}, {"multiscales", Json::array({multiscale})}};
  if (spec.image_label.is_null()) {
    ome["omero"] = OmeroOf(spec);
  } else {
    ome["image-label"] = spec.image_label;
  }
  out["zarr.json"] = {{"zarr_format", 3},
                      {"node_type", "group"},
                      {"attributes", {{"ome", ome}, {"patchbay", patchbay}}}};
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
  PutLine(hash, "patchbay level bytes 2");
  for (const ShardLeaf& leaf : leaves) {
    PutLine(hash, StrCat(leaf.place.Coordinates(), " ", leaf.digest.Hex()));
  }
  return hash.Finish();
}

Digest LevelPixelsNode(const ImageStoreSettings& settings, const Extent& level,
                       const std::vector<Digest>& chunks) {
  const Extent& chunk = settings.chunk;
  Sha256 hash;
  PutLine(hash, StrCat("patchbay level pixels 2 ", patchbay::NameOf(settings.dtype), " ",
                       settings.channels, " ", level.z, " ", level.y, " ", level.x, " ", chunk.z,
                       " ", chunk.y, " ", chunk.x));
  for (const Digest& digest : chunks) hash.Update(std::as_bytes(std::span(digest.bytes)));
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

using FileWriter = Status (*)(const Folders& allowed, const std::string& path,
                              std::span<const std::byte> bytes, unsigned mode);

Status WriteDocuments(const Folders& allowed, const std::string& store, const ImageStoreSpec& spec,
                      const StoreRoots& roots, FileWriter write_file) {
  PB_ASSIGN_OR_RETURN(MetadataDocuments documents, BuildMetadata(spec));
  PB_RETURN_IF_ERROR(
      PutShardList(spec.settings, spec.levels, roots.levels, documents["zarr.json"]));
  Json& patchbay = documents["zarr.json"]["attributes"]["patchbay"];
  patchbay["digest"] = roots.bytes.Hex();
  patchbay["pixel_digest"] = roots.pixels.Hex();
  const auto write = [&](const std::string& path, const Json& document) -> Status {
    const std::string file = StrCat(store, "/", path);
    PB_RETURN_IF_ERROR(MakeDirectories(allowed, file.substr(0, file.rfind('/'))));
    const std::string text = document.dump(2) + "\n";
    return write_file(allowed, file, AsBytes(text), 0644);
  };
  for (const auto& [path, document] : documents) {
    if (path != "zarr.json") PB_RETURN_IF_ERROR(write(path, document));
  }
  return write("zarr.json", documents["zarr.json"]);
}

}  // namespace

Status WriteStoreMetadata(const Folders& allowed, const std::string& store,
                          const ImageStoreSpec& spec, const StoreRoots& roots) {
  return WriteDocuments(allowed, store, spec, roots, WriteFileDurably);
}

Status DraftStoreMetadata(const Folders& allowed, const std::string& store,
                          const ImageStoreSpec& spec, const StoreRoots& roots) {
  return WriteDocuments(allowed, store, spec, roots, ReplaceFile);
}

}  // namespace patchbay::zarr
