// The gather of volumes: one block of voxels that the map samples.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ops/chain/patch_pass.h"
#include "ops/chain/row_gather.h"
#include "ops/chain/scalar_lanes.h"
#include "ops/geometry/map_math.h"

namespace patchbay::ops {
namespace {

/// Voxels of a row, in their order or from the last to the first: loops of one step are made of
/// vectors.
template <typename T, typename Out>
void CopyVoxels(const std::byte* row, std::int64_t step, std::int64_t width, bool is_mirrored,
                Out* out) {
  const auto copy = [&](const std::byte* first, auto by) {
    for (std::int64_t j = 0; j < width; ++j) {
      T value;
      std::memcpy(&value, first + j * by, sizeof value);
      out[j] = static_cast<Out>(value);
    }
  };
  using Along = std::integral_constant<std::int64_t, sizeof(T)>;
  using Against = std::integral_constant<std::int64_t, -static_cast<std::int64_t>(sizeof(T))>;
  const std::byte* last = row + (width - 1) * step;
  if (step != Along::value) {
    copy(is_mirrored ? last : row, is_mirrored ? -step : step);
  } else if (is_mirrored) {
    copy(last, Against{});
  } else {
    copy(row, Along{});
  }
}

/// `width` voxels that lie `step` bytes apart, as floats.
void Widen(DType dtype, const std::byte* row, std::int64_t step, std::int64_t width,
           bool is_mirrored, float* out) {
  switch (dtype) {
    case DType::kUint8:
      return CopyVoxels<std::uint8_t>(row, step, width, is_mirrored, out);
    case DType::kUint16:
      return CopyVoxels<std::uint16_t>(row, step, width, is_mirrored, out);
    case DType::kInt16:
      return CopyVoxels<std::int16_t>(row, step, width, is_mirrored, out);
    default:
      return CopyVoxels<float>(row, step, width, is_mirrored, out);
  }
}

Extent SizeOfView(const ConstTensorView& view) {
  return {view.shape[0], view.shape[1], view.shape[2]};
}

bool IsContiguous(const ConstTensorView& view) {
  const auto element = static_cast<std::int64_t>(SizeOf(view.dtype));
  return view.stride_bytes[2] == element && view.stride_bytes[1] == view.shape[2] * element &&
         view.stride_bytes[0] == view.shape[1] * view.stride_bytes[1];
}

class VolumeGather : public RowGather {
 public:
  VolumeGather(const RowLoops& loops, const ConstTensorView& source, const VolumeGeometry& geometry,
               const Extent& patch);

  void Reserve(Arena& arena) override;
  void Begin(const Arena& arena) override;
  void Values(std::int64_t z, std::int64_t y, const FloatRows& rows) override;
  void Nearest(std::int64_t z, std::int64_t y, std::uint8_t* out) override;

 private:
  const std::byte* SourceRow(std::int64_t z, std::int64_t y) const;
  void FillBlock(std::byte* block) const;
  void SmoothBlock(const Arena& arena);
  void SmoothAcross(float* block, int axis, const PatchBlur& blur, float* room) const;
  /// Where the voxels of a row are sampled.
  const VoxelRow& At(std::int64_t z, std::int64_t y);
  void MoveRow(std::int64_t z, std::int64_t y);

  const RowLoops& loops_;
  const ConstTensorView source_;
  const VolumeGeometry& geometry_;
  const Extent patch_;
  bool is_contiguous_ = false, is_smoothed_ = false;
  VoxelBlock block_;
  VoxelRow row_;
  std::int64_t stride_ = 0, slice_ = -1;
  std::size_t block_at_ = 0, room_at_ = 0, padded_at_ = 0, weights_at_[4] = {}, moves_at_[3] = {};
  SplineColumns columns_;
  float* moves_[3] = {};
  std::vector<float> plane_[3];  ///< the field's points of the slice, (points, points)
};

VolumeGather::VolumeGather(const RowLoops& loops, const ConstTensorView& source,
                           const VolumeGeometry& geometry, const Extent& patch)
    : loops_(loops),
      source_(source),
      geometry_(geometry),
      patch_(patch),
      is_contiguous_(IsContiguous(source)),
      stride_(RoundedUp(patch.x, kRowAlign)) {
  for (const double sigma : geometry.smooth) is_smoothed_ = is_smoothed_ || sigma > 0;
}

void VolumeGather::Reserve(Arena& arena) {
  if (geometry_.whole_voxels) return;
  const Extent size = SizeOfView(source_);
  const auto element = static_cast<std::int64_t>(is_smoothed_ ? 4 : SizeOf(source_.dtype));
  if (!is_contiguous_ || is_smoothed_) {
    block_at_ = arena.Take((size.Pixels() + kVectorSlack) * element);
  }
  if (is_smoothed_) {
    const std::int64_t longest = std::max({size.z, size.y, size.x});
    room_at_ = arena.Take((longest * RoundedUp(size.x, kRowAlign) + kVectorSlack) * 4);
    padded_at_ = arena.Take((longest + 2 * kMaxBlurRadius + kVectorSlack) * 4);
  }
  if (geometry_.field.points == 0) return;
  for (std::size_t& at : weights_at_) at = arena.Take((stride_ + kVectorSlack) * 4);
  for (std::size_t& at : moves_at_) at = arena.Take((stride_ + kVectorSlack) * 4);
}

void VolumeGather::Begin(const Arena& arena) {
  if (geometry_.whole_voxels) return;
  block_ = {source_.data, source_.dtype, SizeOfView(source_)};
  if (is_smoothed_) {
    SmoothBlock(arena);
  } else if (!is_contiguous_) {
    FillBlock(arena.Bytes(block_at_));
    block_.data = arena.Bytes(block_at_);
  }
  row_.block = &block_;
  row_.map = &geometry_.map;
  row_.width = patch_.x;
  const VolumeField& field = geometry_.field;
  if (field.points == 0) return;
  for (std::size_t k = 0; k < 4; ++k) columns_.weight[k] = arena.Floats(weights_at_[k]);
  loops_.spline_columns(stride_, field.inverse_spacing[2], field.points, columns_);
  for (std::size_t a = 0; a < 3; ++a) {
    moves_[a] = arena.Floats(moves_at_[a]);
    row_.moves[a] = moves_[a];
    plane_[a].resize(static_cast<std::size_t>(field.points * field.points));
  }
}

const std::byte* VolumeGather::SourceRow(std::int64_t z, std::int64_t y) const {
  return source_.data + z * source_.stride_bytes[0] + y * source_.stride_bytes[1];
}

void VolumeGather::FillBlock(std::byte* block) const {
  const Extent size = SizeOfView(source_);
  const std::size_t element = SizeOf(source_.dtype);
  for (std::int64_t z = 0; z < size.z; ++z) {
    for (std::int64_t y = 0; y < size.y; ++y) {
      const std::byte* row = SourceRow(z, y);
      for (std::int64_t x = 0; x < size.x; ++x, block += element) {
        std::memcpy(block, row + x * source_.stride_bytes[2], element);
      }
    }
  }
}

void VolumeGather::SmoothBlock(const Arena& arena) {
  const Extent size = SizeOfView(source_);
  float* block = arena.Floats(block_at_);
  const PatchBlur along = BlurOf(geometry_.smooth[2]);
  for (std::int64_t z = 0; z < size.z; ++z) {
    for (std::int64_t y = 0; y < size.y; ++y) {
      float* row = arena.Floats(room_at_);
      Widen(source_.dtype, SourceRow(z, y), source_.stride_bytes[2], size.x, false, row);
      if (along.radius > 0) {
        BlurRow(loops_, along, size.x, row, arena.Floats(padded_at_));
      }
      std::memcpy(block + (z * size.y + y) * size.x, row, static_cast<std::size_t>(size.x) * 4);
    }
  }
  for (const int axis : {1, 0}) {
    const PatchBlur across = BlurOf(geometry_.smooth[axis]);
    if (across.radius > 0) SmoothAcross(block, axis, across, arena.Floats(room_at_));
  }
  block_ = {reinterpret_cast<const std::byte*>(block), DType::kFloat32, size};
}

void VolumeGather::SmoothAcross(float* block, int axis, const PatchBlur& blur, float* room) const {
  const Extent size = SizeOfView(source_);
  const std::int64_t stride = RoundedUp(size.x, kRowAlign);
  const std::int64_t lines = axis == 0 ? size.y : size.z, count = axis == 0 ? size.z : size.y;
  const std::int64_t from_line = axis == 0 ? size.x : size.y * size.x;
  const std::int64_t step = axis == 0 ? size.y * size.x : size.x;
  std::array<const float*, 2 * kMaxBlurRadius + 1> tap;
  for (std::int64_t line = 0; line < lines; ++line) {
    float* first = block + line * from_line;
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t k = 0; k <= 2 * blur.radius; ++k) {
        tap[static_cast<std::size_t>(k)] = first + MirroredPlace(i + k - blur.radius, count) * step;
      }
      loops_.weigh(blur.weight.data(), tap.data(), 2 * blur.radius + 1, size.x, room + i * stride);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(first + i * step, room + i * stride, static_cast<std::size_t>(size.x) * 4);
    }
  }
}

void VolumeGather::MoveRow(std::int64_t z, std::int64_t y) {
  const VolumeField& field = geometry_.field;
  const int n = field.points;
  if (z != slice_) {
    slice_ = z;
    const auto place = PlaceInSpline<ScalarLanes>(static_cast<int>(z), field.inverse_spacing[0], n);
    for (std::size_t a = 0; a < 3; ++a) {
      for (int i = 0; i < n * n; ++i) {
        const float* at = field.moves[a].data() + place.cell * n * n + i;
        plane_[a][static_cast<std::size_t>(i)] =
            SplineSum(place.weight, ScalarLanes{at[0]}, ScalarLanes{at[n * n]},
                      ScalarLanes{at[2 * n * n]}, ScalarLanes{at[3 * n * n]})
                .v;
      }
    }
  }
  const auto place = PlaceInSpline<ScalarLanes>(static_cast<int>(y), field.inverse_spacing[1], n);
  for (std::size_t a = 0; a < 3; ++a) {
    float at_row[kFieldPointsMax];
    for (int i = 0; i < n; ++i) {
      const float* at = plane_[a].data() + place.cell * n + i;
      at_row[i] = SplineSum(place.weight, ScalarLanes{at[0]}, ScalarLanes{at[n]},
                            ScalarLanes{at[2 * n]}, ScalarLanes{at[3 * n]})
                      .v;
    }
    loops_.spline(at_row, columns_, n, moves_[a]);
  }
}

const VoxelRow& VolumeGather::At(std::int64_t z, std::int64_t y) {
  row_.z = z;
  row_.y = y;
  if (geometry_.field.points != 0) MoveRow(z, y);
  return row_;
}

void VolumeGather::Values(std::int64_t z, std::int64_t y, const FloatRows& rows) {
  float* const out = rows.Row(0);
  if (!geometry_.whole_voxels) return loops_.gather_voxels(At(z, y), out);
  const bool(&mirrored)[3] = geometry_.mirrored;
  const std::byte* row =
      SourceRow(mirrored[0] ? patch_.z - 1 - z : z, mirrored[1] ? patch_.y - 1 - y : y);
  Widen(source_.dtype, row, source_.stride_bytes[2], patch_.x, mirrored[2], out);
}

void VolumeGather::Nearest(std::int64_t z, std::int64_t y, std::uint8_t* out) {
  if (!geometry_.whole_voxels) return loops_.nearest_voxels(At(z, y), out);
  const bool(&mirrored)[3] = geometry_.mirrored;
  const std::byte* row =
      SourceRow(mirrored[0] ? patch_.z - 1 - z : z, mirrored[1] ? patch_.y - 1 - y : y);
  CopyVoxels<std::uint8_t>(row, source_.stride_bytes[2], patch_.x, mirrored[2], out);
}

/// Several channels, each a volume of its own.
class ChannelsGather : public RowGather {
 public:
  ChannelsGather(const RowLoops& loops, const ConstTensorView& source,
                 const VolumeGeometry& geometry, const Extent& patch) {
    for (std::int64_t c = 0; c < source.shape[3]; ++c) {
      ConstTensorView one = source;
      one.data += c * source.stride_bytes[3];
      one.shape[3] = 1;
      channels_.push_back(std::make_unique<VolumeGather>(loops, one, geometry, patch));
    }
  }

  void Reserve(Arena& arena) override {
    for (const auto& channel : channels_) channel->Reserve(arena);
  }
  void Begin(const Arena& arena) override {
    for (const auto& channel : channels_) channel->Begin(arena);
  }
  void Values(std::int64_t z, std::int64_t y, const FloatRows& rows) override {
    for (int c = 0; c < rows.channels; ++c) {
      channels_[static_cast<std::size_t>(c)]->Values(z, y, rows.Channel(c));
    }
  }
  void Nearest(std::int64_t z, std::int64_t y, std::uint8_t* out) override {
    channels_.front()->Nearest(z, y, out);
  }

 private:
  std::vector<std::unique_ptr<VolumeGather>> channels_;
};

}  // namespace

std::unique_ptr<RowGather> GatherOf(const RowLoops& loops, const ConstTensorView& source,
                                    const VolumeGeometry& geometry, const Extent& patch) {
  if (source.shape[3] == 1) {
    return std::make_unique<VolumeGather>(loops, source, geometry, patch);
  }
  return std::make_unique<ChannelsGather>(loops, source, geometry, patch);
}

}  // namespace patchbay::ops
