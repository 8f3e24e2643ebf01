#include "runtime/format/zarr/mode_downsample.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/core/runs.h"

namespace patchbay::zarr {
namespace {

std::uint8_t ModeOfFour(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  if (a == b && c == d) return std::min(a, c);
  if (a == b || a == c || a == d) {
    // a is there twice: it ties only with the two others where those are equal.
    const std::uint8_t other = a == b ? c : b;
    const bool is_tie = a == b ? c == d : (a == c ? b == d : b == c);
    return is_tie ? std::min(a, other) : a;
  }
  if (b == c || b == d) return b;
  if (c == d) return c;
  return std::min(std::min(a, b), std::min(c, d));
}

/// Columns [left, right) of some rows.
struct Block {
  std::int64_t left, right, rows;
};

/// The commonest value of the block whose topmost row is `row`.
std::uint8_t ModeOf(const std::uint8_t* row, std::int64_t row_bytes, const Block& block) {
  const std::int64_t width = block.right - block.left;
  bool is_one = true;
  for (std::int64_t y = 0; y < block.rows && is_one; ++y) {
    const std::uint8_t* at = row + y * row_bytes + block.left;
    is_one = *at == row[block.left] && RunLength(at, width) == width;
  }
  if (is_one) return row[block.left];
  std::array<std::uint32_t, 256> counts{};
  for (std::int64_t y = 0; y < block.rows; ++y) {
    const std::uint8_t* at = row + y * row_bytes;
    for (std::int64_t x = block.left; x < block.right; ++x) ++counts[at[x]];
  }
  return static_cast<std::uint8_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

/// Half of a row of `width` blocks of 2 x 2. Four blocks of one value, which most are, at once.
void HalveRow(const std::uint8_t* top, const std::uint8_t* bottom, std::int64_t width,
              std::uint8_t* out) {
  constexpr std::int64_t kTogether = 4;
  std::int64_t x = 0;
  const auto halve_to = [&](std::int64_t end) {
    for (; x < end; ++x) {
      out[x] = ModeOfFour(top[2 * x], top[2 * x + 1], bottom[2 * x], bottom[2 * x + 1]);
    }
  };
  while (x + kTogether <= width) {
    const std::uint64_t above = EightAt(top + 2 * x);
    if (above == EightAt(bottom + 2 * x) && above == EightOf(top[2 * x])) {
      std::memset(out + x, top[2 * x], static_cast<std::size_t>(kTogether));
      x += kTogether;
    } else {
      halve_to(x + kTogether);
    }
  }
  halve_to(width);
}

}  // namespace

void DownsampleByMode(const FinePixels& fine, const Footprints& footprints,
                      const CoarsePixels& coarse) {
  const std::int64_t row_bytes = fine.row_bytes > 0 ? fine.row_bytes : fine.box.width;
  for (std::int64_t y = 0; y < coarse.box.height; ++y) {
    std::uint8_t* out = coarse.data + y * coarse.row_bytes;
    const std::int64_t top = footprints.y.Begin(coarse.box.y + y);
    const std::int64_t bottom = footprints.y.End(coarse.box.y + y);
    const std::uint8_t* row = fine.data + (top - fine.box.y) * row_bytes - fine.box.x;
    std::int64_t x = 0;
    if (bottom - top == 2 && footprints.x.factor() == 2) {
      const std::int64_t left = footprints.x.Begin(coarse.box.x);
      x = std::min(coarse.box.width, (fine.box.x + fine.box.width - left) / 2);
      HalveRow(row + left, row + row_bytes + left, x, out);
    }
    for (; x < coarse.box.width; ++x) {
      const std::int64_t left = footprints.x.Begin(coarse.box.x + x);
      const std::int64_t right = footprints.x.End(coarse.box.x + x);
      out[x] = ModeOf(row, row_bytes, {left, right, bottom - top});
    }
  }
}

namespace {

/// The most common of up to eight values; the smallest of several that are equally common.
std::uint8_t ModeOfFew(std::array<std::uint8_t, 8>& values, std::size_t count) {
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(count);
  if (std::all_of(values.begin(), end, [&](std::uint8_t v) { return v == values[0]; })) {
    return values[0];
  }
  std::sort(values.begin(), end);
  std::uint8_t best = values[0];
  for (std::size_t i = 0, most = 0; i < count;) {
    std::size_t next = i;
    while (next < count && values[next] == values[i]) ++next;
    if (next - i > most) {
      most = next - i;
      best = values[i];
    }
    i = next;
  }
  return best;
}

}  // namespace

Status HalveLabels(const ConstTensorView& in, const TensorView& out) {
  bool fits = in.rank == 4 && out.rank == 4 && in.dtype == DType::kUint8 &&
              out.dtype == DType::kUint8 && in.shape[3] == 1 && out.shape[3] == 1;
  for (int axis = 0; fits && axis < 3; ++axis) fits = out.shape[axis] == (in.shape[axis] + 1) / 2;
  if (!fits) return absl::InvalidArgumentError("halve labels: not one half of the other");
  const auto voxel = [&in](std::int64_t z, std::int64_t y, std::int64_t x) {
    return static_cast<std::uint8_t>(
        in.data[z * in.stride_bytes[0] + y * in.stride_bytes[1] + x * in.stride_bytes[2]]);
  };
  std::array<std::uint8_t, 8> values{};
  for (std::int64_t z = 0; z < out.shape[0]; ++z) {
    for (std::int64_t y = 0; y < out.shape[1]; ++y) {
      for (std::int64_t x = 0; x < out.shape[2]; ++x) {
        std::size_t count = 0;
        for (std::int64_t i = 0; i < 8; ++i) {
          const std::int64_t pz = 2 * z + (i >> 2), py = 2 * y + (i >> 1 & 1), px = 2 * x + (i & 1);
          if (pz >= in.shape[0] || py >= in.shape[1] || px >= in.shape[2]) continue;
          values[count++] = voxel(pz, py, px);
        }
        out.data[z * out.stride_bytes[0] + y * out.stride_bytes[1] + x * out.stride_bytes[2]] =
            static_cast<std::byte>(ModeOfFew(values, count));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::zarr
