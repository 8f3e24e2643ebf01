#include "workers/sources/zarr_source.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/array.h"
#include "runtime/format/zarr/codec/strided_copy.h"
#include "runtime/format/zarr/downsample.h"
#include "runtime/format/zarr/file_byte_store.h"
#include "runtime/format/zarr/ngff.h"
#include "runtime/format/zarr/shard_list.h"
#include "runtime/format/zarr/store_files.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/ops/image_icc_lookup.h"
#include "workers/sources/channel_choice.h"
#include "workers/sources/tile_mosaic.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxStoreChannels = 1024;

/// The array axis of each role; -1 where the store has no such axis.
struct AxisRoles {
  int c = -1, z = -1, y = -1, x = -1;
};

class ZarrScratch : public DecodeScratch {
 public:
  zarr::ChunkScratch chunk;
};

/// Inner chunks a clipped box touches: channels slowest, then slices, rows, columns.
struct ChunkSpan {
  std::vector<std::int64_t> planes = {};  ///< places in the chunk grid along the channels
  Point first;
  Extent grid{0, 0, 0};
  std::int64_t Count() const { return static_cast<std::int64_t>(planes.size()) * grid.Pixels(); }
  std::int64_t PlaneOf(std::int64_t i) const {
    return planes[static_cast<std::size_t>(i / grid.Pixels())];
  }
};

/// Channels of an array that lie one after another.
struct ChannelRange {
  std::int64_t first = 0, count = 0;
};

Status Refuse(const std::string& path, std::string_view cause) {
  return ErrorAbout(absl::StatusCode::kUnimplemented, "open image", path, cause);
}

/// Fills a box of a (depth, height, width, channels) view.
void FillBox(const TensorView& out, const Box& box, const std::byte* element) {
  if (box.Empty() || out.shape[3] == 0) return;
  zarr::CopyPlan plan;
  plan.rank = 4;
  plan.element_bytes = SizeOf(out.dtype);
  plan.shape = {box.depth, box.height, box.width, out.shape[3]};
  for (std::size_t i = 0; i < 4; ++i) plan.to_stride[i] = out.stride_bytes[i];
  zarr::FillStrided(plan, element,
                    out.data + box.z * out.stride_bytes[0] + box.y * out.stride_bytes[1] +
                        box.x * out.stride_bytes[2]);
}

/// Fills the part of the view outside `inside`: slices before and after, then rows, then columns.
void FillAround(const TensorView& out, const Box& inside, const std::byte* element) {
  const std::int64_t depth = out.shape[0], height = out.shape[1], width = out.shape[2];
  if (inside.Empty()) return FillBox(out, {0, 0, 0, depth, height, width}, element);
  const std::int64_t z1 = inside.z + inside.depth, y1 = inside.y + inside.height,
                     x1 = inside.x + inside.width;
  FillBox(out, {0, 0, 0, inside.z, height, width}, element);
  FillBox(out, {z1, 0, 0, depth - z1, height, width}, element);
  FillBox(out, {inside.z, 0, 0, inside.depth, inside.y, width}, element);
  FillBox(out, {inside.z, y1, 0, inside.depth, height - y1, width}, element);
  FillBox(out, {inside.z, inside.y, 0, inside.depth, inside.height, inside.x}, element);
  FillBox(out, {inside.z, inside.y, x1, inside.depth, inside.height, width - x1}, element);
}

class ZarrImage : public ImageSource {
 public:
  ZarrImage(Folders allowed, std::shared_ptr<zarr::FileByteStore> store, ImageLayout layout,
            AxisRoles roles, std::vector<zarr::Array> levels)
      : allowed_(std::move(allowed)),
        path_(store->NameOf("")),
        store_(std::move(store)),
        layout_(std::move(layout)),
        roles_(roles),
        levels_(std::move(levels)) {}

  void Expect(std::shared_ptr<const zarr::StoreFiles> files) override {
    listed_bytes_ = files->MemoryBytes();
    store_->Expect(std::move(files));
  }
  const ImageLayout& layout() const override { return layout_; }
  std::size_t MemoryBytes() const override {
    std::size_t bytes =
        sizeof(*this) + layout_.levels.capacity() * sizeof(LevelLayout) + listed_bytes_;
    for (const zarr::Array& level : levels_) bytes += sizeof(level) + level.MemoryBytes();
    return bytes;
  }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<ZarrScratch>();
  }
  StatusOr<std::shared_ptr<const ops::IccLookup>> ToSrgb() const override;
  Status Fetch(int level, const Box& box, EncodedPatch& out) const override;
  Status Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                DecodeScratch& scratch) const override;
  bool ReadsChosenChannels() const override { return true; }
  void KeepToTiles() override {
    keeps_to_tiles_ = zarr::OwnAttributes(allowed_, path_).value("source_kind", "") == kTilesKind;
  }

 private:
  Status CheckBox(int level, const Box& box) const;
  Status CheckChosen(const std::vector<int>& channels) const;
  Box Clip(int level, const Box& box) const;
  ChunkSpan SpanOf(int level, const Box& clipped, const std::vector<int>& channels) const;
  zarr::Coordinates ChunkAt(const ChunkSpan& span, std::int64_t i) const;
  zarr::Region RegionOf(int level, const Box& clipped, const ChannelRange& channels) const;
  TensorView ArrayView(int level, const Box& clipped, const Box& box, const TensorView& out,
                       const zarr::Region& region) const;
  std::int64_t ChannelsAPlane(int level) const;
  /// The part of chunk `i` of the span that the patch has.
  Status DecodePiece(const EncodedPatch& patch, const ChunkSpan& span, std::int64_t i,
                     const TensorView& out, zarr::ChunkScratch& scratch) const;

  const Folders allowed_;
  std::string path_;
  std::shared_ptr<zarr::FileByteStore> store_;
  ImageLayout layout_;
  AxisRoles roles_;
  std::vector<zarr::Array> levels_;
  std::size_t listed_bytes_ = 0;  ///< bytes of the files that are expected
  bool keeps_to_tiles_ = false;   ///< a tile is a chunk
};

/// The lookup that ingest made of the slide's profile.
StatusOr<std::shared_ptr<const ops::IccLookup>> ZarrImage::ToSrgb() const {
  PB_ASSIGN_OR_RETURN(const zarr::GroupMetadata group, zarr::ReadGroupMetadata(allowed_, path_));
  const Json own = group.attributes.value("patchbay", Json::object());
  if (!own.is_object() || !own.contains(plan::kIccToSrgb)) return nullptr;
  const Json& recorded = own[plan::kIccToSrgb];
  if (recorded.is_object() && recorded.contains("fallback")) {
    return InvalidArgument("read ICC lookup: the slide's profile could not be used");
  }
  PB_ASSIGN_OR_RETURN(ops::IccLookup lookup, ops::IccLookup::FromJson(recorded));
  return std::make_shared<const ops::IccLookup>(std::move(lookup));
}

Status ZarrImage::CheckBox(int level, const Box& box) const {
  if (level < 0 || static_cast<std::size_t>(level) >= levels_.size()) {
    return InvalidArgument("read image: level ", level, " of ", levels_.size());
  }
  constexpr std::int64_t kFarthest = std::int64_t{1} << 41;
  for (const std::int64_t at : {box.z, box.y, box.x}) {
    if (at < -kFarthest || at > kFarthest) {
      return InvalidArgument("read image: box ", box.ToString(),
                             " lies outside the supported range");
    }
  }
  for (const std::int64_t side : {box.depth, box.height, box.width}) {
    if (side < 0 || side > kFarthest) {
      return InvalidArgument("read image: box ", box.ToString(), " has a side out of range");
    }
  }
  return absl::OkStatus();
}

Box ZarrImage::Clip(int level, const Box& box) const {
  const LevelLayout& layout = layout_.levels[static_cast<std::size_t>(level)];
  const Box inside = Intersect(box, WholeOf(layout.size));
  if (!keeps_to_tiles_ || inside.Empty()) return inside;
  const Extent& tile = layout.chunk;
  const std::int64_t y = std::clamp<std::int64_t>(box.y + box.height / 2, 0, layout.size.y - 1);
  return Intersect(inside, Box2D(y / tile.y * tile.y, 0, tile.y, tile.x));
}

Status ZarrImage::CheckChosen(const std::vector<int>& channels) const {
  for (const int c : channels) {
    if (c >= 0 && c < layout_.channels) continue;
    return InvalidArgument("read image: channel ", c, " of ", layout_.channels);
  }
  return absl::OkStatus();
}

/// Channels that lie in one chunk.
std::int64_t ZarrImage::ChannelsAPlane(int level) const {
  if (roles_.c < 0) return 1;
  const zarr::ArrayMetadata& m = levels_[static_cast<std::size_t>(level)].metadata();
  return m.chunk_shape[static_cast<std::size_t>(roles_.c)];
}

ChunkSpan ZarrImage::SpanOf(int level, const Box& clipped, const std::vector<int>& channels) const {
  ChunkSpan span;
  if (clipped.Empty()) return span;
  const Extent& chunk = layout_.levels[static_cast<std::size_t>(level)].chunk;
  const std::int64_t planes =
      roles_.c < 0 ? 1 : levels_[static_cast<std::size_t>(level)].metadata().ChunkGrid(roles_.c);
  for (std::int64_t plane = 0; plane < planes && channels.empty(); ++plane) {
    span.planes.push_back(plane);
  }
  for (const int c : channels) {
    const std::int64_t plane = c / ChannelsAPlane(level);
    if (std::find(span.planes.begin(), span.planes.end(), plane) == span.planes.end()) {
      span.planes.push_back(plane);
    }
  }
  span.first = {clipped.z / chunk.z, clipped.y / chunk.y, clipped.x / chunk.x};
  span.grid = {(clipped.z + clipped.depth - 1) / chunk.z - span.first.z + 1,
               (clipped.y + clipped.height - 1) / chunk.y - span.first.y + 1,
               (clipped.x + clipped.width - 1) / chunk.x - span.first.x + 1};
  return span;
}

zarr::Coordinates ZarrImage::ChunkAt(const ChunkSpan& span, std::int64_t i) const {
  const Point cell = CellAt(span.grid, i % span.grid.Pixels());
  zarr::Coordinates chunk{};
  if (roles_.c >= 0) chunk[static_cast<std::size_t>(roles_.c)] = span.PlaneOf(i);
  if (roles_.z >= 0) chunk[static_cast<std::size_t>(roles_.z)] = span.first.z + cell.z;
  chunk[static_cast<std::size_t>(roles_.y)] = span.first.y + cell.y;
  chunk[static_cast<std::size_t>(roles_.x)] = span.first.x + cell.x;
  return chunk;
}

zarr::Region ZarrImage::RegionOf(int level, const Box& clipped,
                                 const ChannelRange& channels) const {
  const zarr::ArrayMetadata& m = levels_[static_cast<std::size_t>(level)].metadata();
  zarr::Region region;
  for (int i = 0; i < m.rank(); ++i) region.shape[static_cast<std::size_t>(i)] = 1;
  const auto put = [&](int axis, std::int64_t origin, std::int64_t shape) {
    if (axis < 0) return;
    region.origin[static_cast<std::size_t>(axis)] = origin;
    region.shape[static_cast<std::size_t>(axis)] = shape;
  };
  put(roles_.c, channels.first, channels.count);
  put(roles_.z, clipped.z, clipped.depth);
  put(roles_.y, clipped.y, clipped.height);
  put(roles_.x, clipped.x, clipped.width);
  return region;
}

/// `out` seen as the array's axes, starting at the first pixel inside the image.
TensorView ZarrImage::ArrayView(int level, const Box& clipped, const Box& box,
                                const TensorView& out, const zarr::Region& region) const {
  TensorView view;
  view.dtype = out.dtype;
  view.rank = levels_[static_cast<std::size_t>(level)].metadata().rank();
  for (int i = 0; i < view.rank; ++i) {
    const auto a = static_cast<std::size_t>(i);
    view.shape[a] = region.shape[a];
    view.stride_bytes[a] = static_cast<std::int64_t>(SizeOf(out.dtype));
  }
  const auto put = [&](int axis, std::size_t from) {
    if (axis >= 0) view.stride_bytes[static_cast<std::size_t>(axis)] = out.stride_bytes[from];
  };
  put(roles_.z, 0);
  put(roles_.y, 1);
  put(roles_.x, 2);
  put(roles_.c, 3);
  view.data = out.data + (clipped.z - box.z) * out.stride_bytes[0] +
              (clipped.y - box.y) * out.stride_bytes[1] + (clipped.x - box.x) * out.stride_bytes[2];
  return view;
}

Status ZarrImage::Fetch(int level, const Box& box, EncodedPatch& out) const {
  PB_RETURN_IF_ERROR(CheckBox(level, box));
  PB_RETURN_IF_ERROR(CheckChosen(out.channels));
  out.level = level;
  out.box = box;
  out.pieces.clear();
  const Box clipped = Clip(level, box);
  const ChunkSpan span = SpanOf(level, clipped, out.channels);
  std::size_t used = 0;
  for (std::int64_t i = 0; i < span.Count(); ++i) {
    const zarr::Coordinates chunk = ChunkAt(span, i);
    PB_ASSIGN_OR_RETURN(
        const zarr::FetchedChunk fetched,
        levels_[static_cast<std::size_t>(level)].FetchChunk(chunk, out.bytes, used));
    if (out.after_piece) PB_RETURN_IF_ERROR(out.after_piece());
    used += fetched.size_bytes;
    const Point place{roles_.z < 0 ? 0 : chunk[static_cast<std::size_t>(roles_.z)],
                      chunk[static_cast<std::size_t>(roles_.y)],
                      chunk[static_cast<std::size_t>(roles_.x)]};
    out.pieces.push_back({place, fetched.begin, fetched.size_bytes, fetched.absent});
  }
  return absl::OkStatus();
}

Status ZarrImage::DecodePiece(const EncodedPatch& patch, const ChunkSpan& span, std::int64_t i,
                              const TensorView& out, zarr::ChunkScratch& scratch) const {
  const EncodedPiece& piece = patch.pieces[static_cast<std::size_t>(i)];
  const zarr::Array& array = levels_[static_cast<std::size_t>(patch.level)];
  const Box clipped = Clip(patch.level, patch.box);
  const auto bytes = std::span(patch.bytes).subspan(piece.begin, piece.size_bytes);
  zarr::FetchedChunk chunk;
  chunk.chunk = ChunkAt(span, i);
  chunk.absent = piece.absent;
  if (patch.channels.empty()) {
    const zarr::Region region = RegionOf(patch.level, clipped, {0, layout_.channels});
    const TensorView view = ArrayView(patch.level, clipped, patch.box, out, region);
    return array.DecodeChunk(chunk, bytes, region, view, scratch);
  }
  for (std::size_t k = 0; k < patch.channels.size(); ++k) {
    const int channel = patch.channels[k];
    if (channel / ChannelsAPlane(patch.level) != span.PlaneOf(i)) continue;
    const zarr::Region region = RegionOf(patch.level, clipped, {channel, 1});
    TensorView view = ArrayView(patch.level, clipped, patch.box, out, region);
    view.data += static_cast<std::int64_t>(k) * out.stride_bytes[3];
    PB_RETURN_IF_ERROR(array.DecodeChunk(chunk, bytes, region, view, scratch));
  }
  return absl::OkStatus();
}

Status ZarrImage::Decode(const EncodedPatch& patch, const TensorView& view, double fill,
                         DecodeScratch& scratch) const {
  PB_RETURN_IF_ERROR(CheckBox(patch.level, patch.box));
  PB_RETURN_IF_ERROR(CheckChosen(patch.channels));
  const Box& box = patch.box;
  const std::int64_t channels =
      patch.channels.empty() ? layout_.channels : static_cast<std::int64_t>(patch.channels.size());
  const TensorView out = view.rank == 3 ? WithDepth(view) : view;
  if (out.rank != 4 || out.dtype != layout_.dtype || out.shape[0] != box.depth ||
      out.shape[1] != box.height || out.shape[2] != box.width || out.shape[3] != channels) {
    return InvalidArgument("decode patch: the view is not ", box.Shape().ToString(), " x ",
                           channels, " ", NameOf(layout_.dtype));
  }
  const std::optional<Element> element = ElementOf(fill, out.dtype);
  if (!element) {
    return InvalidArgument("decode patch: fill ", fill, " is not a value of ", NameOf(out.dtype),
                           " (", RangeOf(out.dtype), ")");
  }
  const Box clipped = Clip(patch.level, box);
  const Point within{clipped.z - box.z, clipped.y - box.y, clipped.x - box.x};
  FillAround(out, BoxAt(within, clipped.Shape()), element->data());
  if (clipped.Empty()) return absl::OkStatus();
  const ChunkSpan span = SpanOf(patch.level, clipped, patch.channels);
  if (patch.pieces.size() != static_cast<std::size_t>(span.Count())) {
    return InvalidArgument("decode patch: the fetched pieces do not match the box");
  }
  auto& chunk_scratch = static_cast<ZarrScratch&>(scratch).chunk;
  for (std::int64_t i = 0; i < span.Count(); ++i) {
    const EncodedPiece& piece = patch.pieces[static_cast<std::size_t>(i)];
    const Status status = DecodePiece(patch, span, i, out, chunk_scratch);
    if (!status.ok()) {
      return Annotate(
          status,
          StrCat("level ", patch.level,
                 layout_.levels.front().size.z > 1 ? StrCat(", slices ", piece.chunk.z) : "",
                 ", row ", piece.chunk.y, ", column ", piece.chunk.x));
    }
  }
  return absl::OkStatus();
}

StatusOr<AxisRoles> RolesOf(const zarr::Multiscales& multiscales, const std::string& path) {
  AxisRoles roles;
  for (std::size_t i = 0; i < multiscales.axes.size(); ++i) {
    const std::string& name = multiscales.axes[i].name;
    const int axis = static_cast<int>(i);
    if (name == "c") roles.c = axis;
    if (name == "z") roles.z = axis;
    if (name == "y") roles.y = axis;
    if (name == "x") roles.x = axis;
  }
  if (roles.y < 0 || roles.x < 0) return Refuse(path, "no axes named y and x");
  return roles;
}

/// Checks that the level fits the image, and returns its size.
StatusOr<LevelLayout> LayoutOf(const zarr::ArrayMetadata& m, const AxisRoles& roles,
                               std::size_t axes, const std::string& path) {
  if (m.shape.size() != axes) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "open image", path,
                      StrCat("the array has ", m.shape.size(), " axes, multiscales ", axes));
  }
  LevelLayout level;
  for (std::size_t i = 0; i < axes; ++i) {
    const int axis = static_cast<int>(i);
    if (m.shape[i] == 0) return Refuse(path, "an axis of extent 0");
    const bool named = axis == roles.c || axis == roles.z || axis == roles.y || axis == roles.x;
    if (!named && m.shape[i] != 1)
      return Refuse(path, "another axis than c, z, y, x longer than 1");
  }
  const auto along = [](const std::vector<std::int64_t>& shape, int axis) {
    return axis < 0 ? 1 : shape[static_cast<std::size_t>(axis)];
  };
  level.size = {along(m.shape, roles.z), along(m.shape, roles.y), along(m.shape, roles.x)};
  level.chunk = {along(m.chunk_shape, roles.z), along(m.chunk_shape, roles.y),
                 along(m.chunk_shape, roles.x)};
  return level;
}

/// The array of a level that the root's metadata names.
StatusOr<zarr::Array> OpenArray(std::shared_ptr<zarr::ByteStore> store, const std::string& level,
                                const zarr::ArrayOptions& options) {
  const std::string name = store->NameOf(level);
  auto array = zarr::Array::Open(std::move(store), level, options);
  if (!absl::IsNotFound(array.status())) return array;
  return ErrorAbout(absl::StatusCode::kDataLoss, "open image", name,
                    "missing, although the store's metadata names this level");
}

/// The spacing of level 0; nothing where the axis or its unit is missing.
std::optional<AxisSpacing> SpacingAlong(const zarr::Multiscales& multiscales, int axis) {
  if (axis < 0) return std::nullopt;
  const auto a = static_cast<std::size_t>(axis);
  const auto unit = LengthUnitFromName(multiscales.axes[a].unit);
  if (!unit) return std::nullopt;
  return AxisSpacing{multiscales.levels.front().scale[a], *unit};
}

}  // namespace

StatusOr<std::unique_ptr<ImageSource>> OpenZarrImage(const Folders& allowed,
                                                     const std::string& path,
                                                     const ReadCaches& caches) {
  PB_ASSIGN_OR_RETURN(const zarr::GroupMetadata root, zarr::ReadGroupMetadata(allowed, path));
  return OpenZarrImage(allowed, path, root, caches);
}

StatusOr<std::unique_ptr<ImageSource>> OpenZarrImage(const Folders& allowed,
                                                     const std::string& path,
                                                     const zarr::GroupMetadata& root,
                                                     const ReadCaches& caches) {
  PB_ASSIGN_OR_RETURN(const zarr::Multiscales multiscales,
                      zarr::ParseMultiscales(root.attributes, path));
  PB_ASSIGN_OR_RETURN(const AxisRoles roles, RolesOf(multiscales, path));
  ImageLayout layout;
  layout.kind = "zarr";
  layout.spacing = {SpacingAlong(multiscales, roles.z), SpacingAlong(multiscales, roles.y),
                    SpacingAlong(multiscales, roles.x)};
  const zarr::ArrayOptions options{caches.indexes};
  const auto store = std::make_shared<zarr::FileByteStore>(allowed, path, caches.files);
  std::vector<zarr::Array> arrays;
  for (const zarr::NgffLevel& level : multiscales.levels) {
    PB_ASSIGN_OR_RETURN(zarr::Array array, OpenArray(store, level.path, options));
    const zarr::ArrayMetadata& m = array.metadata();
    PB_ASSIGN_OR_RETURN(LevelLayout size, LayoutOf(m, roles, multiscales.axes.size(), path));
    const std::int64_t channels = roles.c < 0 ? 1 : m.shape[static_cast<std::size_t>(roles.c)];
    if (channels > kMaxStoreChannels) return Refuse(path, StrCat(channels, " channels"));
    if (arrays.empty()) {
      layout.dtype = m.dtype;
      layout.channels = static_cast<int>(channels);
    } else if (m.dtype != layout.dtype || channels != layout.channels) {
      return Refuse(path, "levels of different data types or channel counts");
    }
    const Extent finest = layout.levels.empty() ? size.size : layout.levels.front().size;
    const auto along = [&](int axis, std::int64_t first, std::int64_t side) {
      if (axis < 0) return 1.0;
      const auto a = static_cast<std::size_t>(axis);
      return zarr::DownsampleAlong(first, side,
                                   level.scale[a] / multiscales.levels.front().scale[a]);
    };
    size.steps = {along(roles.z, finest.z, size.size.z), along(roles.y, finest.y, size.size.y),
                  along(roles.x, finest.x, size.size.x)};
    size.downsample = (size.steps[1] + size.steps[2]) / 2;
    layout.levels.push_back(size);
    arrays.push_back(std::move(array));
  }
  layout.channel_names = StoredChannelNames(root.attributes, layout.channels);
  if (const Status status = zarr::ExpectListedFiles(root.attributes, arrays); !status.ok()) {
    return About(WithCode(status, absl::StatusCode::kDataLoss), "open image",
                 StrCat(path, "/zarr.json"));
  }
  return std::unique_ptr<ImageSource>(
      std::make_unique<ZarrImage>(allowed, store, std::move(layout), roles, std::move(arrays)));
}

}  // namespace patchbay::workers
