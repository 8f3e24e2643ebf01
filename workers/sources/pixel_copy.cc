#include "workers/sources/pixel_copy.h"

#include <cstring>
#include <optional>

#include "runtime/core/element.h"
#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxCoordinate = std::int64_t{1} << 40;
constexpr std::int64_t kMaxPatchSide = 1 << 20;

}  // namespace

Status CheckPatchBox(const Box& box) {
  const bool is_flat = box.z == 0 && box.depth == 1;
  const bool is_near = box.y > -kMaxCoordinate && box.y < kMaxCoordinate &&
                       box.x > -kMaxCoordinate && box.x < kMaxCoordinate;
  const bool is_sized =
      box.height > 0 && box.width > 0 && box.height <= kMaxPatchSide && box.width <= kMaxPatchSide;
  if (is_flat && is_near && is_sized) return absl::OkStatus();
  return InvalidArgument("read patch: ", box.ToString(), ": not a patch of a 2-D image");
}

StatusOr<TensorView> FlatPatchView(const TensorView& out, const Box& box, int channels) {
  const bool has_depth = out.rank == 4 && out.shape[0] == 1;
  const TensorView flat = has_depth ? SliceOf(out, 0) : out;
  const bool is_shape = flat.rank == 3 && flat.shape[0] == box.height &&
                        flat.shape[1] == box.width && flat.shape[2] == channels;
  if (is_shape && flat.dtype == DType::kUint8 && flat.data != nullptr) return flat;
  return InvalidArgument("decode patch: the output is not uint8 (", box.height, ", ", box.width,
                         ", ", channels, ")");
}

StatusOr<std::uint8_t> FillByte(double fill) {
  const std::optional<Element> element = ElementOf(fill, DType::kUint8);
  if (element) return static_cast<std::uint8_t>((*element)[0]);
  return InvalidArgument("decode patch: fill ", fill, " is not a value of uint8 (",
                         RangeOf(DType::kUint8), ")");
}

bool IsInterleaved(const TensorView& out) {
  return out.stride_bytes[2] == 1 && out.stride_bytes[1] == out.shape[2];
}

void FillPatch(const TensorView& out, std::uint8_t value) {
  for (std::int64_t y = 0; y < out.shape[0]; ++y) {
    std::byte* row = out.data + y * out.stride_bytes[0];
    if (IsInterleaved(out)) {
      std::memset(row, value, static_cast<std::size_t>(out.shape[1] * out.shape[2]));
      continue;
    }
    for (std::int64_t c = 0; c < out.shape[2]; ++c) {
      std::byte* p = row + c * out.stride_bytes[2];
      for (std::int64_t x = 0; x < out.shape[1]; ++x) {
        p[x * out.stride_bytes[1]] = static_cast<std::byte>(value);
      }
    }
  }
}

void CopySamples(const SampleRows& rows, const TensorView& out, std::int64_t y, std::int64_t x,
                 int first_channel) {
  const bool is_plain = IsInterleaved(out) && rows.channels == out.shape[2] && !rows.is_inverted;
  const auto flip = static_cast<std::uint8_t>(rows.is_inverted ? 0xFF : 0);
  const std::uint8_t* source = rows.data;
  for (std::int64_t i = 0; i < rows.height; ++i, source += rows.stride_bytes) {
    std::byte* row = out.data + (y + i) * out.stride_bytes[0] + x * out.stride_bytes[1];
    if (is_plain) {
      std::memcpy(row, source, static_cast<std::size_t>(rows.width * rows.channels));
      continue;
    }
    for (int c = 0; c < rows.channels; ++c) {
      std::byte* p = row + (first_channel + c) * out.stride_bytes[2];
      for (std::int64_t k = 0; k < rows.width; ++k) {
        p[k * out.stride_bytes[1]] = static_cast<std::byte>(source[k * rows.channels + c] ^ flip);
      }
    }
  }
}

}  // namespace patchbay::workers
