// The gather of images: each slice by the same map.
#include <algorithm>
#include <cstring>

#include "ops/chain/chain_stage.h"
#include "ops/chain/row_gather.h"

namespace patchbay::ops {
namespace {

Strided FirstSlice(const ConstTensorView& source) {
  Strided slice;
  slice.data = const_cast<std::byte*>(source.data);  // NOLINT: only read
  slice.height = source.shape[1];
  slice.width = source.shape[2];
  slice.channels = source.shape[3];
  slice.row_bytes = source.stride_bytes[1];
  slice.column_bytes = source.stride_bytes[2];
  slice.channel_bytes = source.stride_bytes[3];
  slice.element_bytes = static_cast<int>(SizeOf(source.dtype));
  return slice;
}

class ImageGather : public RowGather {
 public:
  ImageGather(const RowLoops& loops, const ConstTensorView& source, const PatchGeometry& geometry,
              const Extent& patch)
      : loops_(loops),
        geometry_(geometry),
        source_(source),
        slice_(FirstSlice(source)),
        patch_(patch),
        stride_(RoundedUp(patch.x, kRowAlign)),
        stage_row_(RoundedUp(patch.x * slice_.channels + kStageSlack, 64)) {}

  void Reserve(Arena& arena) override {
    if (geometry_.whole_pixels) {
      stage_at_ = arena.Take(stage_row_ * kStageRows);
      bytes_at_ = arena.Take(slice_.channels * stride_ + kVectorSlack);
      return;
    }
    for (std::size_t& at : places_at_) at = arena.Take((stride_ + kVectorSlack) * 4);
  }

  void Begin(const Arena& arena) override {
    if (geometry_.whole_pixels) {
      stage_ = reinterpret_cast<std::uint8_t*>(arena.Bytes(stage_at_));
      bytes_ = reinterpret_cast<std::uint8_t*>(arena.Bytes(bytes_at_));
      return;
    }
    row_.source = &slice_;
    row_.geometry = &geometry_;
    row_.dtype = source_.dtype;
    row_.at_y = arena.Floats(places_at_[0]);
    row_.at_x = arena.Floats(places_at_[1]);
    dy_ = arena.Floats(places_at_[2]);
    dx_ = arena.Floats(places_at_[3]);
    if (geometry_.field.points == 0) return;
    for (std::size_t k = 0; k < 4; ++k) columns_.weight[k] = arena.Floats(places_at_[4 + k]);
    loops_.spline_columns(stride_, geometry_.inverse_spacing_x, geometry_.field.points, columns_);
    row_.dy = dy_;
    row_.dx = dx_;
  }

  void Values(std::int64_t z, std::int64_t y, const FloatRows& rows) override {
    GoTo(z);
    if (geometry_.whole_pixels) return MoveRow(y, rows);
    Place(y);
    if (FitsRgbGather(slice_, source_.dtype)) return loops_.gather_rgb(row_, rows);
    loops_.places(row_, stride_);
    GatherAny(row_, rows);
  }

  void Nearest(std::int64_t z, std::int64_t y, std::uint8_t* out) override {
    GoTo(z);
    if (geometry_.whole_pixels) return MoveLabels(y, out);
    Place(y);
    loops_.places(row_, stride_);
    GatherNearest(row_, patch_.x, out);
  }

 private:
  void GoTo(std::int64_t z) {
    slice_.data = const_cast<std::byte*>(source_.data) + z * source_.stride_bytes[0];  // NOLINT
  }

  /// Where the pixels of a row lie.
  void Place(std::int64_t y) {
    row_.row = y;
    if (row_.dy == nullptr) return;
    loops_.displace(geometry_, geometry_.field.dy, columns_, y, dy_);
    loops_.displace(geometry_, geometry_.field.dx, columns_, y, dx_);
  }

  void MoveRow(std::int64_t y, const FloatRows& rows) {
    const WindowMap& window = geometry_.window;
    if (source_.dtype != DType::kUint8) return CopyPixels(slice_, source_.dtype, window, y, rows);
    const RowInSource found = FindRow(slice_, window, y);
    const bool in_place = found.row != nullptr && !found.mirrored;
    if (!in_place && y % kStageRows == 0) {
      StageRows(slice_, window, y, std::min(kStageRows, patch_.y - y), stage_, stage_row_);
    }
    const std::uint8_t* row = in_place ? found.row : stage_ + y % kStageRows * stage_row_;
    std::int64_t made = 0;
    if (slice_.channels == 3) {
      ByteRow split;
      split.row = row;
      split.width = patch_.x;
      split.out = reinterpret_cast<std::byte*>(bytes_);
      split.plane_bytes = stride_;
      made = SplitRowAvx2(split);
    }
    for (std::int64_t c = 0; c < slice_.channels; ++c) {
      for (std::int64_t j = made; j < patch_.x; ++j) {
        bytes_[c * stride_ + j] = row[j * slice_.channels + c];
      }
    }
    loops_.widen(bytes_, rows);
  }

  /// A finished row is a run of the source, forwards, backwards or down a column.
  void MoveLabels(std::int64_t y, std::uint8_t* out) const {
    const auto at = [&](std::int64_t x) {
      const PixelPlace place = SourceOf(geometry_.window, y, x);
      return reinterpret_cast<const std::uint8_t*>(slice_.At(place.y, place.x, 0));
    };
    const std::uint8_t* first = at(0);
    const std::ptrdiff_t step = patch_.x > 1 ? at(1) - first : 1;
    if (step == 1) {
      std::memcpy(out, first, static_cast<std::size_t>(patch_.x));
    } else {
      for (std::int64_t j = 0; j < patch_.x; ++j) out[j] = first[j * step];
    }
  }

  const RowLoops& loops_;
  const PatchGeometry& geometry_;
  const ConstTensorView source_;
  Strided slice_;
  const Extent patch_;
  const std::int64_t stride_, stage_row_;
  std::size_t stage_at_ = 0, bytes_at_ = 0, places_at_[8] = {};
  std::uint8_t *stage_ = nullptr, *bytes_ = nullptr;
  float *dy_ = nullptr, *dx_ = nullptr;
  SplineColumns columns_;
  PixelRow row_;
};

}  // namespace

std::unique_ptr<RowGather> GatherOf(const RowLoops& loops, const ConstTensorView& source,
                                    const PatchGeometry& geometry, const Extent& patch) {
  return std::make_unique<ImageGather>(loops, source, geometry, patch);
}

}  // namespace patchbay::ops
