#include "runtime/zarr/downsample.h"

#include <array>
#include <cstdint>

#include <immintrin.h>

#include "runtime/base/strings.h"

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

/// One output row. `b` is `a` again below an odd last row, and the last pixel of an odd row stands
/// for its missing neighbour: the mean of doubled values is the mean of the values.
template <typename T>
void Row(const T* a, const T* b, std::int64_t in_width, T* out, std::int64_t channels) {
  const std::int64_t out_width = (in_width + 1) / 2;
  std::int64_t done = 0;
  if constexpr (sizeof(T) == 1) {
    if (channels <= 8) {
      done = SumPairs(a, b, in_width / 2 * 2 * channels, out, in_width / 2 * channels,
                      static_cast<int>(channels)) /
             channels;
    }
  }
  for (std::int64_t x = done; x < out_width; ++x) {
    const std::int64_t left = 2 * x * channels;
    const std::int64_t right = 2 * x + 1 < in_width ? left + channels : left;
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::uint32_t sum =
          std::uint32_t{a[left + c]} + a[right + c] + b[left + c] + b[right + c];
      out[x * channels + c] = static_cast<T>((sum + 2) / 4);
    }
  }
}

template <typename T>
void Rows(const ConstTensorView& in, const TensorView& out) {
  for (std::int64_t y = 0; y < out.shape[0]; ++y) {
    const std::byte* a = in.data + 2 * y * in.stride_bytes[0];
    const std::byte* b = 2 * y + 1 < in.shape[0] ? a + in.stride_bytes[0] : a;
    Row(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), in.shape[1],
        reinterpret_cast<T*>(out.data + y * out.stride_bytes[0]), in.shape[2]);
  }
}

Status CheckViews(const ConstTensorView& in, const TensorView& out) {
  const auto element = static_cast<std::int64_t>(SizeOf(in.dtype));
  const auto interleaved = [&](const ConstTensorView& v) {
    return v.rank == 3 && v.stride_bytes[2] == element && v.stride_bytes[1] == element * v.shape[2];
  };
  const bool halves = in.rank == 3 && out.rank == 3 && out.shape[0] == (in.shape[0] + 1) / 2 &&
                      out.shape[1] == (in.shape[1] + 1) / 2 && out.shape[2] == in.shape[2];
  const bool typed =
      in.dtype == out.dtype && (in.dtype == DType::kUint8 || in.dtype == DType::kUint16);
  if (typed && halves && interleaved(in) && interleaved(out)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "downsample: views: not interleaved uint8 or uint16 images of which one is half the other");
}

}  // namespace

Status DownsampleByTwo(const ConstTensorView& in, const TensorView& out) {
  PB_RETURN_IF_ERROR(CheckViews(in, out));
  in.dtype == DType::kUint8 ? Rows<std::uint8_t>(in, out) : Rows<std::uint16_t>(in, out);
  return absl::OkStatus();
}

}  // namespace patchbay::zarr
