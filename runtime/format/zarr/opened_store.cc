#include "runtime/format/zarr/opened_store.h"

#include "runtime/core/channels.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/os/file.h"

namespace patchbay::zarr {
namespace {

Status NotOurs(const std::string& store, std::string_view cause) {
  return ErrorAbout(
      absl::StatusCode::kUnimplemented, "verify store", store,
      StrCat("not a store of Patchbay's image writer, and only those have digests to verify: ",
             cause));
}

StatusOr<Json> ReadDocument(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(allowed, path, kMaxMetadataBytes));
  return ParseJson(text, path);
}

/// The axes of the writer's arrays; nullopt of any other array.
std::optional<StoreAxes> AxesOf(const ArrayMetadata& array) {
  const std::vector<int>& order = array.chain.order;
  if (order == std::vector<int>{1, 2, 0}) return StoreAxes::kCyx;
  if (order == std::vector<int>{0, 1, 2}) return StoreAxes::kZyx;
  if (order == std::vector<int>{0, 1, 2, 3}) return StoreAxes::kCzyx;
  return std::nullopt;
}

/// The writer's layout, or an error that names the difference.
StatusOr<ImageStoreSettings> SettingsOf(const ArrayMetadata& array, const std::string& store) {
  const std::optional<StoreAxes> axes = AxesOf(array);
  if (array.zarr_format != 3 || !array.sharded || !axes) {
    return NotOurs(store,
                   "an array that is neither sharded (c, y, x) with interleaved chunks nor "
                   "sharded (z, y, x) or (c, z, y, x)");
  }
  const bool is_flat = *axes == StoreAxes::kCyx, has_channels = *axes != StoreAxes::kZyx;
  if (has_channels && array.shape[0] > kMaxChannels) {
    return NotOurs(store, StrCat(array.shape[0], " channels"));
  }
  const auto shape_of = [&](const std::vector<std::int64_t>& shape) {
    const std::size_t rank = shape.size();
    return Extent{is_flat ? 1 : shape[rank - 3], shape[rank - 2], shape[rank - 1]};
  };
  ImageStoreSettings s;
  s.axes = *axes;
  s.dtype = array.dtype;
  s.channels = has_channels ? static_cast<int>(array.shape[0]) : 1;
  s.chunk = shape_of(array.chunk_shape);
  s.shard = shape_of(array.shard_shape);
  s.fill_value = 0;  // any of the type: the array has its own
  const std::int64_t together = s.ChunkChannels();
  if (has_channels && (array.chunk_shape[0] != together || array.shard_shape[0] != together)) {
    return NotOurs(store, is_flat ? "chunks that do not hold all channels"
                                  : "chunks that hold several channels of a volume");
  }
  PB_RETURN_IF_ERROR(Validate(s));
  return s;
}

std::optional<StoreRoots> RecordedRoots(const Json& root) {
  const Json* patchbay = &root;
  for (const char* key : {"attributes", "patchbay"}) {
    if (!patchbay->is_object() || !patchbay->contains(key)) return std::nullopt;
    patchbay = &(*patchbay)[key];
  }
  const auto digest = [&](const char* key) -> std::optional<Digest> {
    if (!patchbay->is_object() || !patchbay->contains(key)) return std::nullopt;
    const Json& value = (*patchbay)[key];
    const auto parsed = value.is_string() ? Digest::FromHex(value.get<std::string>())
                                          : StatusOr<Digest>(NotFound(""));
    return parsed.ok() ? std::optional(*parsed) : std::nullopt;
  };
  const auto bytes = digest("digest"), pixels = digest("pixel_digest");
  if (!bytes || !pixels) return std::nullopt;
  return StoreRoots{*bytes, *pixels, {}};
}

/// A level's document, which the root document promises.
StatusOr<Json> ReadLevelDocument(const Folders& allowed, const std::string& store,
                                 const std::string& document) {
  auto out = ReadDocument(allowed, StrCat(store, "/", document));
  if (!absl::IsNotFound(out.status())) return out;
  return ErrorAbout(absl::StatusCode::kNotFound, "verify store", StrCat(store, "/", document),
                    "missing, although the root zarr.json names this level");
}

/// Reads the recorded settings, as far as they can be made out, and their faults.
void ReadRecorded(const ImageStoreSpec& spec, OpenedStore& out) {
  const Json& root = out.documents["zarr.json"];
  out.recorded = RecordedRoots(root);
  auto listed = ShardListIn(root, spec.settings, spec.levels);
  if (!listed.ok()) {
    out.faults.push_back(StrCat("zarr.json: ", MessageOf(listed.status())));
    return;
  }
  out.listed = std::move(*listed);
  if (out.listed.empty()) return;
  if (!out.recorded) {
    out.faults.push_back("zarr.json: attributes.patchbay: digest or pixel_digest is missing");
    return;
  }
  std::vector<Digest> nodes;
  for (const LevelFiles& level : out.listed) nodes.push_back(level.digest);
  const Digest computed = BytesRoot(out.documents, nodes);
  if (computed == out.recorded->bytes) return;
  out.faults.push_back(
      StrCat("zarr.json: metadata was changed since the store was written (digest ",
             out.recorded->bytes.Hex(), " recorded, ", computed.Hex(),
             " computed): what it says of missing and surplus shard files may be changed as well"));
}

}  // namespace

std::string OpenedStore::FileOf(const ShardPlace& place) const {
  return StrCat(At(place).path, "/c/", place.Coordinates());
}

std::optional<std::optional<ListedShard>> OpenedStore::Listed(const ShardPlace& place) const {
  if (listed.empty()) return std::nullopt;
  const Extent grid = ShardGridOf(settings, At(place).size);
  const std::size_t at =
      place.ChannelBegin(grid) + static_cast<std::size_t>(IndexOf(grid, place.at));
  return listed[static_cast<std::size_t>(place.level)].shards[at];
}

Region RegionOf(const ImageStoreSettings& settings, const Box& box, int channel) {
  if (settings.axes == StoreAxes::kCzyx) {
    return {{channel, box.z, box.y, box.x}, {1, box.depth, box.height, box.width}};
  }
  if (settings.axes == StoreAxes::kZyx) {
    return {{box.z, box.y, box.x}, {box.depth, box.height, box.width}};
  }
  return {{0, box.y, box.x}, {settings.channels, box.height, box.width}};
}

TensorView AlongAxes(const ImageStoreSettings& settings, const TensorView& image) {
  constexpr std::size_t kDepth = 0, kHeight = 1, kWidth = 2, kChannels = 3;
  std::vector<std::size_t> from = {kHeight, kWidth};
  if (settings.IsVolume()) from.insert(from.begin(), kDepth);
  if (settings.axes != StoreAxes::kZyx) from.insert(from.begin(), kChannels);
  TensorView out = image;
  out.rank = static_cast<int>(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    out.shape[i] = image.shape[from[i]];
    out.stride_bytes[i] = image.stride_bytes[from[i]];
  }
  return out;
}

StatusOr<OpenedStore> OpenStore(const Folders& allowed, const std::string& path) {
  OpenedStore out;
  out.path = path;
  PB_ASSIGN_OR_RETURN(const GroupMetadata group, ReadGroupMetadata(allowed, path));
  if (group.zarr_format != 3) return NotOurs(path, StrCat("it is Zarr v", group.zarr_format));
  PB_ASSIGN_OR_RETURN(const Multiscales multiscales, ParseMultiscales(group.attributes, path));
  PB_ASSIGN_OR_RETURN(out.documents["zarr.json"], ReadDocument(allowed, path + "/zarr.json"));
  ImageStoreSpec spec;
  for (const NgffLevel& level : multiscales.levels) {
    const std::string folder = path + "/" + level.path;
    const std::string document = level.path + "/zarr.json";
    PB_ASSIGN_OR_RETURN(out.documents[document], ReadLevelDocument(allowed, path, document));
    PB_ASSIGN_OR_RETURN(Array array, Array::Open(allowed, folder));
    PB_ASSIGN_OR_RETURN(const ImageStoreSettings settings, SettingsOf(array.metadata(), path));
    const std::vector<std::int64_t>& shape = array.metadata().shape;
    const std::size_t rank = shape.size();
    const Extent size{settings.IsVolume() ? shape[rank - 3] : 1, shape[rank - 2], shape[rank - 1]};
    const bool same = settings.axes == out.settings.axes && settings.dtype == out.settings.dtype &&
                      settings.channels == out.settings.channels &&
                      settings.chunk == out.settings.chunk && settings.shard == out.settings.shard;
    if (!out.levels.empty() && !same) return NotOurs(path, "levels of different layouts");
    out.settings = settings;
    spec.levels.push_back(size);
    out.levels.push_back({level.path, std::move(array), size});
  }
  spec.settings = out.settings;
  const Json own = group.attributes.value("patchbay", Json());
  out.digests_tiles = own.is_object() && own.value(kPixelDigestOf, Json()) == kTilesThemselves;
  PB_RETURN_IF_ERROR(BuildMetadata(spec).status());  // the size limits of the writer hold here too
  ReadRecorded(spec, out);
  return out;
}

}  // namespace patchbay::zarr
