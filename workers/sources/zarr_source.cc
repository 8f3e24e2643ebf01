#include "workers/sources/zarr_source.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <immintrin.h>

#include "runtime/base/strings.h"
#include "runtime/zarr/array.h"
#include "runtime/zarr/ngff.h"
#include "runtime/zarr/shard_list.h"
#include "runtime/zarr/strided_copy.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxOpenFiles = 32;
constexpr std::int64_t kMaxChannels = 1024;

/// Which array axis is which; -1 where the store has no such axis.
struct AxisRoles {
  int c = -1, z = -1, y = -1, x = -1;
};

class ZarrScratch : public DecodeScratch {
 public:
  zarr::ChunkScratch chunk;
};

/// Inner chunks a clipped box touches: channels slowest, then rows, then columns.
struct ChunkSpan {
  std::int64_t planes = 1;
  std::int64_t first_row = 0, rows = 0, first_column = 0, columns = 0;
  std::int64_t Count() const { return planes * rows * columns; }
};

Status Refuse(const std::string& path, std::string_view cause) {
  return absl::UnimplementedError(StrCat("open image: ", path, ": ", cause));
}

/// `fill` as one element of the type.
std::array<std::byte, 8> FillElement(std::uint8_t fill, DType dtype) {
  std::array<std::byte, 8> out{};
  if (dtype == DType::kFloat64) {
    const double value = fill;
    std::memcpy(out.data(), &value, sizeof value);
  } else if (dtype == DType::kFloat32 || dtype == DType::kBfloat16) {
    const float value = fill;  // a bfloat16 is the upper half; small whole numbers fit it exactly
    std::memcpy(out.data(), &value, sizeof value);
    if (dtype == DType::kBfloat16) std::copy(out.begin() + 2, out.begin() + 4, out.begin());
  } else if (dtype == DType::kFloat16) {
    const auto value =
        static_cast<std::uint16_t>(_cvtss_sh(static_cast<float>(fill), _MM_FROUND_TO_NEAREST_INT));
    std::memcpy(out.data(), &value, sizeof value);
  } else {
    out[0] = static_cast<std::byte>(dtype == DType::kBool ? fill != 0 : fill);
  }
  return out;
}

/// Fills rows [y0, y1) and columns [x0, x1) of an (height, width, channels) view.
void FillBox(const TensorView& out, std::int64_t y0, std::int64_t y1, std::int64_t x0,
             std::int64_t x1, const std::byte* element) {
  if (y1 <= y0 || x1 <= x0 || out.shape[2] == 0) return;
  zarr::CopyPlan plan;
  plan.rank = 3;
  plan.element_bytes = SizeOf(out.dtype);
  plan.shape = {y1 - y0, x1 - x0, out.shape[2]};
  for (std::size_t i = 0; i < 3; ++i) plan.to_stride[i] = out.stride_bytes[i];
  zarr::FillStrided(plan, element, out.data + y0 * out.stride_bytes[0] + x0 * out.stride_bytes[1]);
}

class ZarrImage : public ImageSource {
 public:
  ZarrImage(ImageLayout layout, AxisRoles roles, std::vector<zarr::Array> levels)
      : layout_(std::move(layout)), roles_(roles), levels_(std::move(levels)) {}

  const ImageLayout& layout() const override { return layout_; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<ZarrScratch>();
  }
  Status Fetch(int level, const Box& box, EncodedPatch& out) const override;
  Status Decode(const EncodedPatch& patch, const TensorView& out, std::uint8_t fill,
                DecodeScratch& scratch) const override;

 private:
  Status CheckBox(int level, const Box& box) const;
  Box Clip(int level, const Box& box) const;
  ChunkSpan SpanOf(int level, const Box& clipped) const;
  zarr::Coordinates ChunkAt(int level, const ChunkSpan& span, std::int64_t i, const Box& box) const;
  zarr::Region RegionOf(int level, const Box& clipped) const;
  TensorView ArrayView(int level, const Box& clipped, const Box& box, const TensorView& out) const;

  ImageLayout layout_;
  AxisRoles roles_;
  std::vector<zarr::Array> levels_;
};

Status ZarrImage::CheckBox(int level, const Box& box) const {
  if (level < 0 || static_cast<std::size_t>(level) >= levels_.size()) {
    return absl::InvalidArgumentError(StrCat("read image: level ", level, " of ", levels_.size()));
  }
  if (box.depth != 1 || box.height < 0 || box.width < 0) {
    return absl::InvalidArgumentError(
        StrCat("read image: box ", box.ToString(), ": not one plane of pixels"));
  }
  return absl::OkStatus();
}

Box ZarrImage::Clip(int level, const Box& box) const {
  const LevelLayout& l = layout_.levels[static_cast<std::size_t>(level)];
  return Intersect(box, Box{0, 0, 0, l.depth, l.height, l.width});
}

ChunkSpan ZarrImage::SpanOf(int level, const Box& clipped) const {
  ChunkSpan span;
  if (clipped.Empty()) return span;
  const zarr::ArrayMetadata& m = levels_[static_cast<std::size_t>(level)].metadata();
  const std::int64_t ch = m.chunk_shape[static_cast<std::size_t>(roles_.y)];
  const std::int64_t cw = m.chunk_shape[static_cast<std::size_t>(roles_.x)];
  if (roles_.c >= 0) span.planes = m.ChunkGrid(roles_.c);
  span.first_row = clipped.y / ch;
  span.rows = (clipped.y + clipped.height - 1) / ch - span.first_row + 1;
  span.first_column = clipped.x / cw;
  span.columns = (clipped.x + clipped.width - 1) / cw - span.first_column + 1;
  return span;
}

zarr::Coordinates ZarrImage::ChunkAt(int level, const ChunkSpan& span, std::int64_t i,
                                     const Box& box) const {
  const zarr::ArrayMetadata& m = levels_[static_cast<std::size_t>(level)].metadata();
  zarr::Coordinates chunk{};
  if (roles_.c >= 0) chunk[static_cast<std::size_t>(roles_.c)] = i / (span.rows * span.columns);
  if (roles_.z >= 0) {
    chunk[static_cast<std::size_t>(roles_.z)] =
        box.z / m.chunk_shape[static_cast<std::size_t>(roles_.z)];
  }
  chunk[static_cast<std::size_t>(roles_.y)] = span.first_row + i / span.columns % span.rows;
  chunk[static_cast<std::size_t>(roles_.x)] = span.first_column + i % span.columns;
  return chunk;
}

zarr::Region ZarrImage::RegionOf(int level, const Box& clipped) const {
  const zarr::ArrayMetadata& m = levels_[static_cast<std::size_t>(level)].metadata();
  zarr::Region region;
  for (int i = 0; i < m.rank(); ++i) region.shape[static_cast<std::size_t>(i)] = 1;
  const auto put = [&](int axis, std::int64_t origin, std::int64_t shape) {
    if (axis < 0) return;
    region.origin[static_cast<std::size_t>(axis)] = origin;
    region.shape[static_cast<std::size_t>(axis)] = shape;
  };
  put(roles_.c, 0, layout_.channels);
  put(roles_.z, clipped.z, 1);
  put(roles_.y, clipped.y, clipped.height);
  put(roles_.x, clipped.x, clipped.width);
  return region;
}

/// `out` seen as the array's axes, starting at the first pixel inside the image.
TensorView ZarrImage::ArrayView(int level, const Box& clipped, const Box& box,
                                const TensorView& out) const {
  const zarr::Region region = RegionOf(level, clipped);
  TensorView view;
  view.dtype = out.dtype;
  view.rank = levels_[static_cast<std::size_t>(level)].metadata().rank();
  for (int i = 0; i < view.rank; ++i) {
    const auto a = static_cast<std::size_t>(i);
    view.shape[a] = region.shape[a];
    view.stride_bytes[a] = static_cast<std::int64_t>(SizeOf(out.dtype));
  }
  view.stride_bytes[static_cast<std::size_t>(roles_.y)] = out.stride_bytes[0];
  view.stride_bytes[static_cast<std::size_t>(roles_.x)] = out.stride_bytes[1];
  if (roles_.c >= 0) view.stride_bytes[static_cast<std::size_t>(roles_.c)] = out.stride_bytes[2];
  view.data = out.data + (clipped.y - box.y) * out.stride_bytes[0] +
              (clipped.x - box.x) * out.stride_bytes[1];
  return view;
}

Status ZarrImage::Fetch(int level, const Box& box, EncodedPatch& out) const {
  PB_RETURN_IF_ERROR(CheckBox(level, box));
  out.level = level;
  out.box = box;
  out.pieces.clear();
  const Box clipped = Clip(level, box);
  const ChunkSpan span = SpanOf(level, clipped);
  std::size_t used = 0;
  for (std::int64_t i = 0; i < span.Count(); ++i) {
    const zarr::Coordinates chunk = ChunkAt(level, span, i, clipped);
    PB_ASSIGN_OR_RETURN(
        const zarr::FetchedChunk fetched,
        levels_[static_cast<std::size_t>(level)].FetchChunk(chunk, out.bytes, used));
    used += fetched.size_bytes;
    out.pieces.push_back({chunk[static_cast<std::size_t>(roles_.y)],
                          chunk[static_cast<std::size_t>(roles_.x)], fetched.begin,
                          fetched.size_bytes, fetched.absent});
  }
  return absl::OkStatus();
}

Status ZarrImage::Decode(const EncodedPatch& patch, const TensorView& out, std::uint8_t fill,
                         DecodeScratch& scratch) const {
  PB_RETURN_IF_ERROR(CheckBox(patch.level, patch.box));
  const Box& box = patch.box;
  if (out.rank != 3 || out.dtype != layout_.dtype || out.shape[0] != box.height ||
      out.shape[1] != box.width || out.shape[2] != layout_.channels) {
    return absl::InvalidArgumentError(StrCat("decode patch: the view is not ", box.height, " x ",
                                             box.width, " x ", layout_.channels, " ",
                                             NameOf(layout_.dtype)));
  }
  const Box clipped = Clip(patch.level, box);
  const auto element = FillElement(fill, out.dtype);
  const std::int64_t y0 = clipped.Empty() ? box.height : clipped.y - box.y;
  const std::int64_t y1 = clipped.Empty() ? box.height : y0 + clipped.height;
  FillBox(out, 0, y0, 0, box.width, element.data());
  FillBox(out, y1, box.height, 0, box.width, element.data());
  if (clipped.Empty()) return absl::OkStatus();
  const std::int64_t x0 = clipped.x - box.x;
  FillBox(out, y0, y1, 0, x0, element.data());
  FillBox(out, y0, y1, x0 + clipped.width, box.width, element.data());

  const ChunkSpan span = SpanOf(patch.level, clipped);
  if (patch.pieces.size() != static_cast<std::size_t>(span.Count())) {
    return absl::InvalidArgumentError("decode patch: its pieces are not those of its box");
  }
  const zarr::Array& array = levels_[static_cast<std::size_t>(patch.level)];
  const zarr::Region region = RegionOf(patch.level, clipped);
  const TensorView view = ArrayView(patch.level, clipped, box, out);
  auto& chunk_scratch = static_cast<ZarrScratch&>(scratch).chunk;
  for (std::int64_t i = 0; i < span.Count(); ++i) {
    const EncodedPiece& piece = patch.pieces[static_cast<std::size_t>(i)];
    zarr::FetchedChunk chunk;
    chunk.chunk = ChunkAt(patch.level, span, i, clipped);
    chunk.absent = piece.absent;
    const auto bytes = std::span(patch.bytes).subspan(piece.begin, piece.size_bytes);
    const Status status = array.DecodeChunk(chunk, bytes, region, view, chunk_scratch);
    if (!status.ok()) {
      return Annotate(
          status, StrCat("level ", patch.level, ", row ", piece.row, ", column ", piece.column));
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

/// Checks that the level fits the image and says how large it is.
StatusOr<LevelLayout> LayoutOf(const zarr::ArrayMetadata& m, const AxisRoles& roles,
                               std::size_t axes, const std::string& path) {
  if (m.shape.size() != axes) {
    return absl::InvalidArgumentError(StrCat("open image: ", path, ": the array has ",
                                             m.shape.size(), " axes, multiscales ", axes));
  }
  LevelLayout level;
  for (std::size_t i = 0; i < axes; ++i) {
    const int axis = static_cast<int>(i);
    if (m.shape[i] == 0) return Refuse(path, "an axis of extent 0");
    const bool named = axis == roles.c || axis == roles.z || axis == roles.y || axis == roles.x;
    if (!named && m.shape[i] != 1)
      return Refuse(path, "another axis than c, z, y, x longer than 1");
  }
  level.height = m.shape[static_cast<std::size_t>(roles.y)];
  level.width = m.shape[static_cast<std::size_t>(roles.x)];
  level.chunk_height = m.chunk_shape[static_cast<std::size_t>(roles.y)];
  level.chunk_width = m.chunk_shape[static_cast<std::size_t>(roles.x)];
  if (roles.z >= 0) level.depth = m.shape[static_cast<std::size_t>(roles.z)];
  return level;
}

/// The array of a level that the root's metadata names.
StatusOr<zarr::Array> OpenLevel(const std::string& store, const std::string& level,
                                const zarr::ArrayOptions& options) {
  auto array = zarr::Array::Open(store + "/" + level, options);
  if (!absl::IsNotFound(array.status())) return array;
  return absl::DataLossError(StrCat("open image: ", store, "/", level,
                                    ": missing, although the store's metadata names this level"));
}

std::optional<double> MppOf(const zarr::Multiscales& multiscales, int axis) {
  const auto a = static_cast<std::size_t>(axis);
  const auto factor = zarr::MicrometresPer(multiscales.axes[a].unit);
  if (!factor) return std::nullopt;
  return multiscales.levels.front().scale[a] * *factor;
}

}  // namespace

StatusOr<std::unique_ptr<ImageSource>> OpenZarrImage(const std::string& path) {
  PB_ASSIGN_OR_RETURN(const zarr::GroupMetadata group, zarr::ReadGroupMetadata(path));
  PB_ASSIGN_OR_RETURN(const zarr::Multiscales multiscales,
                      zarr::ParseMultiscales(group.attributes, path));
  PB_ASSIGN_OR_RETURN(const AxisRoles roles, RolesOf(multiscales, path));
  ImageLayout layout;
  layout.kind = "zarr";
  layout.mpp_y = MppOf(multiscales, roles.y);
  layout.mpp_x = MppOf(multiscales, roles.x);
  zarr::ArrayOptions options;
  options.files = std::make_shared<zarr::FileCache>(kMaxOpenFiles);
  std::vector<zarr::Array> arrays;
  for (const zarr::NgffLevel& level : multiscales.levels) {
    PB_ASSIGN_OR_RETURN(zarr::Array array, OpenLevel(path, level.path, options));
    const zarr::ArrayMetadata& m = array.metadata();
    PB_ASSIGN_OR_RETURN(LevelLayout size, LayoutOf(m, roles, multiscales.axes.size(), path));
    const std::int64_t channels = roles.c < 0 ? 1 : m.shape[static_cast<std::size_t>(roles.c)];
    if (channels > kMaxChannels) return Refuse(path, StrCat(channels, " channels"));
    if (arrays.empty()) {
      layout.dtype = m.dtype;
      layout.channels = static_cast<int>(channels);
    } else if (m.dtype != layout.dtype || channels != layout.channels) {
      return Refuse(path, "levels of different data types or channel counts");
    }
    const LevelLayout& finest = layout.levels.empty() ? size : layout.levels.front();
    size.downsample = (static_cast<double>(finest.height) / static_cast<double>(size.height) +
                       static_cast<double>(finest.width) / static_cast<double>(size.width)) /
                      2;
    layout.levels.push_back(size);
    arrays.push_back(std::move(array));
  }
  if (const Status status = zarr::ExpectListedFiles(group.attributes, arrays); !status.ok()) {
    return absl::DataLossError(StrCat("open image: ", path, "/zarr.json: ", MessageOf(status)));
  }
  return std::unique_ptr<ImageSource>(
      std::make_unique<ZarrImage>(std::move(layout), roles, std::move(arrays)));
}

}  // namespace patchbay::workers
