#include "workers/sources/interleave.h"

#include <array>

#include <immintrin.h>

namespace patchbay::workers {
namespace {

constexpr int kLanes = 16;

/// For each of the 16 bytes of part `part` of 16 interleaved pixels, which pixel of plane `c` it is
/// of; the high bit, which a shuffle turns to 0, where it is of another plane.
constexpr std::array<std::uint8_t, kLanes> PlacesOf(int c, int part) {
  std::array<std::uint8_t, kLanes> places{};
  for (int i = 0; i < kLanes; ++i) {
    const int at = part * kLanes + i;
    places[static_cast<std::size_t>(i)] =
        at % 3 == c ? static_cast<std::uint8_t>(at / 3) : std::uint8_t{0x80};
  }
  return places;
}
constexpr std::array<std::uint8_t, kLanes> kPlaces[3][3] = {
    {PlacesOf(0, 0), PlacesOf(0, 1), PlacesOf(0, 2)},
    {PlacesOf(1, 0), PlacesOf(1, 1), PlacesOf(1, 2)},
    {PlacesOf(2, 0), PlacesOf(2, 1), PlacesOf(2, 2)}};

inline __m128i Load(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

}  // namespace

void InterleaveRow(const std::uint8_t* first, const std::uint8_t* second, const std::uint8_t* third,
                   std::int64_t pixels, std::uint8_t* out) {
  std::int64_t x = 0;
  for (; x + kLanes <= pixels; x += kLanes) {
    const __m128i planes[3] = {Load(first + x), Load(second + x), Load(third + x)};
    for (int part = 0; part < 3; ++part) {
      __m128i bytes = _mm_shuffle_epi8(planes[0], Load(kPlaces[0][part].data()));
      for (int c = 1; c < 3; ++c) {
        bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(planes[c], Load(kPlaces[c][part].data())));
      }
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * x + part * kLanes), bytes);
    }
  }
  for (; x < pixels; ++x) {
    out[3 * x] = first[x];
    out[3 * x + 1] = second[x];
    out[3 * x + 2] = third[x];
  }
}

}  // namespace patchbay::workers
