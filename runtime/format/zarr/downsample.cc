#include "runtime/format/zarr/downsample.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "runtime/core/runs.h"
#include "runtime/core/strings.h"

namespace patchbay::zarr {
namespace {

/// For one 16-byte load of interleaved pixels: which bytes pair up, how many bytes are used up and
/// how many results they give.
struct PairPattern {
  std::array<std::int8_t, 16> shuffle{};
  std::int64_t in_bytes = 0, out_bytes = 0;
};

constexpr PairPattern PatternFor(int channels) {
  PairPattern p;
  const int pairs = 16 / (2 * channels);
  p.in_bytes = 2 * channels * pairs;
  p.out_bytes = channels * pairs;
  for (auto& index : p.shuffle) index = -1;
  for (int pair = 0; pair < pairs; ++pair) {
    for (int c = 0; c < channels; ++c) {
      const int out = 2 * (pair * channels + c);
      const int in = 2 * channels * pair + c;
      p.shuffle[static_cast<std::size_t>(out)] = static_cast<std::int8_t>(in);
      p.shuffle[static_cast<std::size_t>(out) + 1] = static_cast<std::int8_t>(in + channels);
    }
  }
  return p;
}

/// Two rows of uint8 to one, as far as whole loads and stores fit. Returns the bytes of output
/// made.
std::int64_t SumPairs(const std::uint8_t* a, const std::uint8_t* b, std::int64_t in_bytes,
                      std::uint8_t* out, std::int64_t out_bytes, int channels) {
  const PairPattern pattern = PatternFor(channels);
  const __m128i shuffle = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pattern.shuffle.data()));
  const __m128i ones = _mm_set1_epi8(1);
  const __m128i two = _mm_set1_epi16(2);
  std::int64_t i = 0, o = 0;
  const __m256i shuffle_2 = _mm256_broadcastsi128_si256(shuffle);
  const __m256i ones_2 = _mm256_set1_epi8(1), two_2 = _mm256_set1_epi16(2);
  const auto load = [&](const std::uint8_t* from) {
    const __m256i both =
        _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(from + pattern.in_bytes),
                            reinterpret_cast<const __m128i*>(from));
    return _mm256_maddubs_epi16(_mm256_shuffle_epi8(both, shuffle_2), ones_2);
  };
  for (; i + pattern.in_bytes + 16 <= in_bytes && o + pattern.out_bytes + 8 <= out_bytes;
       i += 2 * pattern.in_bytes, o += 2 * pattern.out_bytes) {
    __m256i sum = _mm256_add_epi16(load(a + i), load(b + i));
    sum = _mm256_srli_epi16(_mm256_add_epi16(sum, two_2), 2);
    sum = _mm256_packus_epi16(sum, sum);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + o), _mm256_castsi256_si128(sum));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + o + pattern.out_bytes),
                     _mm256_extracti128_si256(sum, 1));
  }
  for (; i + 16 <= in_bytes && o + 8 <= out_bytes; i += pattern.in_bytes, o += pattern.out_bytes) {
    const __m128i va =
        _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)), shuffle);
    const __m128i vb =
        _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)), shuffle);
    __m128i sum = _mm_add_epi16(_mm_maddubs_epi16(va, ones), _mm_maddubs_epi16(vb, ones));
    sum = _mm_srli_epi16(_mm_add_epi16(sum, two), 2);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + o), _mm_packus_epi16(sum, sum));
  }
  return o;
}

/// The four input rows of an output row: two of each slice. Past an odd end a row or slice stands
/// for its missing neighbour: the mean of doubled values is the mean of the values.
template <typename T>
struct FourRows {
  const T* rows[4];
  bool is_flat = true;  ///< the last two are the first two
};

template <typename T>
T MeanOfEight(const FourRows<T>& in, std::int64_t left, std::int64_t right) {
  if constexpr (std::is_floating_point_v<T>) {
    double sum = 0;
    for (const T* row : in.rows) sum += double{row[left]} + double{row[right]};
    return static_cast<T>(sum / 8);
  } else {
    std::int32_t sum = 4;
    for (const T* row : in.rows) sum += std::int32_t{row[left]} + row[right];
    return static_cast<T>(sum >> 3);
  }
}

/// One output row; the last pixel of an odd row stands for its missing neighbour too.
template <typename T>
void Row(const FourRows<T>& in, std::int64_t in_width, T* out, std::int64_t channels) {
  const std::int64_t out_width = (in_width + 1) / 2;
  std::int64_t done = 0;
  if constexpr (sizeof(T) == 1) {
    if (channels <= 8 && in.is_flat) {
      done = SumPairs(in.rows[0], in.rows[1], in_width / 2 * 2 * channels, out,
                      in_width / 2 * channels, static_cast<int>(channels)) /
             channels;
    }
  }
  for (std::int64_t x = done; x < out_width; ++x) {
    const std::int64_t left = 2 * x * channels;
    const std::int64_t right = 2 * x + 1 < in_width ? left + channels : left;
    for (std::int64_t c = 0; c < channels; ++c) {
      out[x * channels + c] = MeanOfEight(in, left + c, right + c);
    }
  }
}

template <typename T>
void Rows(const ConstTensorView& in, const TensorView& out) {
  for (std::int64_t z = 0; z < out.shape[0]; ++z) {
    const std::byte* slice = in.data + 2 * z * in.stride_bytes[0];
    const bool has_next = 2 * z + 1 < in.shape[0];
    const std::byte* next = has_next ? slice + in.stride_bytes[0] : slice;
    for (std::int64_t y = 0; y < out.shape[1]; ++y) {
      const std::int64_t top = 2 * y * in.stride_bytes[1];
      const std::int64_t bottom = 2 * y + 1 < in.shape[1] ? top + in.stride_bytes[1] : top;
      const auto at = [](const std::byte* from, std::int64_t offset) {
        return reinterpret_cast<const T*>(from + offset);
      };
      const FourRows<T> rows{{at(slice, top), at(slice, bottom), at(next, top), at(next, bottom)},
                             !has_next};
      std::byte* to = out.data + z * out.stride_bytes[0] + y * out.stride_bytes[1];
      Row(rows, in.shape[2], reinterpret_cast<T*>(to), in.shape[3]);
    }
  }
}

Status CheckViews(const ConstTensorView& in, const TensorView& out) {
  const auto element = static_cast<std::int64_t>(SizeOf(in.dtype));
  const auto interleaved = [&](const ConstTensorView& v) {
    return v.rank == 4 && v.stride_bytes[3] == element && v.stride_bytes[2] == element * v.shape[3];
  };
  bool halves = in.rank == 4 && out.rank == 4 && out.shape[3] == in.shape[3];
  for (std::size_t i = 0; i < 3; ++i) halves = halves && out.shape[i] == (in.shape[i] + 1) / 2;
  if (in.dtype == out.dtype && halves && interleaved(in) && interleaved(out)) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "downsample: views: expected interleaved images of one type, one half the size of the other");
}

std::uint8_t ModeOfFour(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  if (a == b && c == d) return std::min(a, c);
  if (a == b || a == c || a == d) {
    // `a` occurs twice: there is a tie only where the two other values are equal.
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

/// ModeOfFour of sixteen blocks, in words: the columns of one parity of each row in the low bytes.
__m256i ModesOfFour(__m256i a, __m256i b, __m256i c, __m256i d) {
  const auto order = [](__m256i& x, __m256i& y) {
    const __m256i least = _mm256_min_epi16(x, y);
    y = _mm256_max_epi16(x, y);
    x = least;
  };
  order(a, b), order(c, d), order(a, c), order(b, d), order(b, c);  // a <= b <= c <= d
  // The least but where a larger one occurs twice and the least does not.
  const __m256i if_last = _mm256_blendv_epi8(a, c, _mm256_cmpeq_epi16(c, d));
  const __m256i if_middle = _mm256_blendv_epi8(if_last, b, _mm256_cmpeq_epi16(b, c));
  return _mm256_blendv_epi8(if_middle, a, _mm256_cmpeq_epi16(a, b));
}

/// Half of a row of `width` blocks of 2 x 2.
void HalveRow(const std::uint8_t* top, const std::uint8_t* bottom, std::int64_t width,
              std::uint8_t* out) {
  constexpr std::int64_t kTogether = 32;
  const __m256i low = _mm256_set1_epi16(0xff);
  const auto modes = [&](std::int64_t x) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(top + 2 * x));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bottom + 2 * x));
    return ModesOfFour(_mm256_and_si256(a, low), _mm256_srli_epi16(a, 8), _mm256_and_si256(b, low),
                       _mm256_srli_epi16(b, 8));
  };
  std::int64_t x = 0;
  for (; x + kTogether <= width; x += kTogether) {
    const __m256i both = _mm256_packus_epi16(modes(x), modes(x + kTogether / 2));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x),
                        _mm256_permute4x64_epi64(both, 0b11011000));
  }
  for (; x < width; ++x) {
    out[x] = ModeOfFour(top[2 * x], top[2 * x + 1], bottom[2 * x], bottom[2 * x + 1]);
  }
}

}  // namespace

Status DownsampleByTwo(const ConstTensorView& in, const TensorView& out) {
  PB_RETURN_IF_ERROR(CheckViews(in, out));
  switch (in.dtype) {
    case DType::kUint8:
      Rows<std::uint8_t>(in, out);
      return absl::OkStatus();
    case DType::kUint16:
      Rows<std::uint16_t>(in, out);
      return absl::OkStatus();
    case DType::kInt16:
      Rows<std::int16_t>(in, out);
      return absl::OkStatus();
    case DType::kFloat32:
      Rows<float>(in, out);
      return absl::OkStatus();
    default:
      return InvalidArgument("downsample: ", NameOf(in.dtype),
                             ": none of uint8, uint16, int16, float32");
  }
}

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
  if (!fits) return InvalidArgument("halve labels: expected one image half the size of the other");
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
