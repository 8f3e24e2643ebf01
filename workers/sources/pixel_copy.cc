#include "workers/sources/pixel_copy.h"

#include <cstring>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxPixelCoordinate = std::int64_t{1} << 40;
constexpr std::int64_t kMaxPatchSide = 1 << 20;

/// One channel of a row of samples.
template <typename Sample>
void CopyChannel(const std::uint8_t* from, std::int64_t width, std::int64_t channels, Sample flip,
                 std::byte* to, std::int64_t step) {
  for (std::int64_t k = 0; k < width; ++k) {
    Sample sample;
    std::memcpy(&sample, from + k * channels * static_cast<std::int64_t>(sizeof(sample)),
                sizeof(sample));
    sample = static_cast<Sample>(sample ^ flip);
    std::memcpy(to + k * step, &sample, sizeof(sample));
  }
}

}  // namespace

Status CheckPatchBox(const Box& box) {
  const bool is_flat = box.z == 0 && box.depth == 1;
  const bool is_near = box.y > -kMaxPixelCoordinate && box.y < kMaxPixelCoordinate &&
                       box.x > -kMaxPixelCoordinate && box.x < kMaxPixelCoordinate;
  const bool is_sized =
      box.height > 0 && box.width > 0 && box.height <= kMaxPatchSide && box.width <= kMaxPatchSide;
  if (is_flat && is_near && is_sized) return absl::OkStatus();
  return InvalidArgument("read patch: ", box.ToString(), ": not a patch of a 2-D image");
}

StatusOr<TensorView> FlatPatchView(const TensorView& out, const Box& box, int channels,
                                   DType dtype) {
  const bool has_depth = out.rank == 4 && out.shape[0] == 1;
  const TensorView flat = has_depth ? SliceOf(out, 0) : out;
  const bool is_shape = flat.rank == 3 && flat.shape[0] == box.height &&
                        flat.shape[1] == box.width && flat.shape[2] == channels;
  if (is_shape && flat.dtype == dtype && flat.data != nullptr) return flat;
  return InvalidArgument("decode patch: the output is not ", NameOf(dtype), " (", box.height, ", ",
                         box.width, ", ", channels, ")");
}

StatusOr<Element> FillElement(double fill, DType dtype) {
  const std::optional<Element> element = ElementOf(fill, dtype);
  if (element) return *element;
  return InvalidArgument("decode patch: fill ", fill, " is not a value of ", NameOf(dtype), " (",
                         RangeOf(dtype), ")");
}

bool IsInterleaved(const TensorView& out) {
  const auto bytes = static_cast<std::int64_t>(SizeOf(out.dtype));
  return out.stride_bytes[2] == bytes && out.stride_bytes[1] == out.shape[2] * bytes;
}

void FillPatch(const TensorView& out, const Element& value) {
  const std::size_t bytes = SizeOf(out.dtype);
  for (std::int64_t y = 0; y < out.shape[0]; ++y) {
    std::byte* row = out.data + y * out.stride_bytes[0];
    if (IsInterleaved(out) && bytes == 1) {
      std::memset(row, static_cast<int>(value[0]),
                  static_cast<std::size_t>(out.shape[1] * out.shape[2]));
      continue;
    }
    for (std::int64_t c = 0; c < out.shape[2]; ++c) {
      std::byte* p = row + c * out.stride_bytes[2];
      for (std::int64_t x = 0; x < out.shape[1]; ++x) {
        std::memcpy(p + x * out.stride_bytes[1], value.data(), bytes);
      }
    }
  }
}

void CopySamples(const SampleRows& rows, const TensorView& out, std::int64_t y, std::int64_t x,
                 int first_channel) {
  const bool is_plain = IsInterleaved(out) && rows.channels == out.shape[2] && !rows.is_inverted;
  const auto flip = static_cast<std::uint16_t>(rows.is_inverted ? 0xFFFF : 0);
  const std::size_t bytes = SizeOf(out.dtype);
  const std::uint8_t* source = rows.data;
  for (std::int64_t i = 0; i < rows.height; ++i, source += rows.stride_bytes) {
    std::byte* row = out.data + (y + i) * out.stride_bytes[0] + x * out.stride_bytes[1];
    if (is_plain) {
      std::memcpy(row, source, static_cast<std::size_t>(rows.width * rows.channels) * bytes);
      continue;
    }
    for (int c = 0; c < rows.channels; ++c) {
      std::byte* p = row + (first_channel + c) * out.stride_bytes[2];
      const std::uint8_t* from = source + static_cast<std::size_t>(c) * bytes;
      if (bytes == 1) {
        CopyChannel(from, rows.width, rows.channels, static_cast<std::uint8_t>(flip), p,
                    out.stride_bytes[1]);
      } else {
        CopyChannel(from, rows.width, rows.channels, flip, p, out.stride_bytes[1]);
      }
    }
  }
}

}  // namespace patchbay::workers
