#include "ops/chain/chain_stage.h"

#include <cstring>

#include <immintrin.h>

namespace patchbay::ops {

namespace {

bool ContiguousPixels(const Strided& source) {
  return source.channel_bytes == 1 && source.column_bytes == source.channels;
}

const std::uint8_t* Pixel(const Strided& source, std::int64_t y, std::int64_t x) {
  return reinterpret_cast<const std::uint8_t*>(source.At(y, x, 0));
}

/// Columns [from, to) of finished row i, any strides and channels.
void StageByPixel(const Strided& source, const WindowMap& map, std::int64_t i, std::int64_t from,
                  std::int64_t to, std::uint8_t* out) {
  for (std::int64_t j = from; j < to; ++j) {
    const PixelPlace place = SourceOf(map, i, j);
    for (std::int64_t c = 0; c < source.channels; ++c) {
      out[j * source.channels + c] =
          *reinterpret_cast<const std::uint8_t*>(source.At(place.y, place.x, c));
    }
  }
}

/// A mirrored row of three channels: five pixels a step. Each step stores 16 bytes, of which the
/// next step overwrites the last.
void StageMirrored3(const std::uint8_t* row, std::int64_t width, std::uint8_t* out) {
  const __m128i reverse = _mm_setr_epi8(12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2, -1);
  std::int64_t j = 0;
  // The last pixel of the source is handled alone: a 16-byte load there would pass the row's end.
  if (width > 0) {
    std::memcpy(out, row + 3 * (width - 1), 3);
    j = 1;
  }
  for (; j + 5 <= width; j += 5) {
    const auto* at = reinterpret_cast<const __m128i*>(row + 3 * (width - j - 5));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 3 * j),
                     _mm_shuffle_epi8(_mm_loadu_si128(at), reverse));
  }
  for (; j < width; ++j) std::memcpy(out + 3 * j, row + 3 * (width - 1 - j), 3);
}

/// Four pixels (12 bytes, no more are read) as 32-bit lanes.
__m128i LoadFour(const std::uint8_t* at) {
  std::int32_t last;
  std::memcpy(&last, at + 8, sizeof last);
  const __m128i bytes =
      _mm_insert_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)), last, 2);
  const __m128i widen = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  return _mm_shuffle_epi8(bytes, widen);
}

/// Writes 16 bytes, of which 12 are the four pixels.
void StoreFour(__m128i pixels, std::uint8_t* out) {
  const __m128i narrow = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(pixels, narrow));
}

/// Four pixels of each of four source rows, `step` bytes apart, become four pixels of each of four
/// finished rows.
void TransposeFour(const std::uint8_t* from, std::int64_t step, std::uint8_t* const (&out)[4]) {
  const __m128i row[4] = {LoadFour(from), LoadFour(from + step), LoadFour(from + 2 * step),
                          LoadFour(from + 3 * step)};
  const __m128i a = _mm_unpacklo_epi32(row[0], row[1]), b = _mm_unpacklo_epi32(row[2], row[3]);
  const __m128i c = _mm_unpackhi_epi32(row[0], row[1]), d = _mm_unpackhi_epi32(row[2], row[3]);
  StoreFour(_mm_unpacklo_epi64(a, b), out[0]);
  StoreFour(_mm_unpackhi_epi64(a, b), out[1]);
  StoreFour(_mm_unpacklo_epi64(c, d), out[2]);
  StoreFour(_mm_unpackhi_epi64(c, d), out[3]);
}

void StageTransposed3(const Strided& source, const WindowMap& map, std::int64_t first,
                      std::int64_t count, std::uint8_t* stage, std::int64_t stage_row_bytes) {
  const std::int64_t whole_rows = count / 4 * 4, whole_columns = map.out_width / 4 * 4;
  // A finished row runs down the source, or up when mirrored.
  const std::int64_t step = map.reverse_y ? -source.row_bytes : source.row_bytes;
  const std::uint8_t* from[kStageRows / 4] = {};
  std::uint8_t* to[kStageRows / 4][4] = {};
  for (std::int64_t r = 0; r < whole_rows; r += 4) {
    // Four neighbours in a source row are four finished rows; mirrored, in the other order.
    const PixelPlace place = SourceOf(map, map.reverse_x ? first + r + 3 : first + r, 0);
    from[r / 4] = Pixel(source, place.y, place.x);
    for (std::int64_t k = 0; k < 4; ++k) {
      to[r / 4][k] = stage + (r + (map.reverse_x ? 3 - k : k)) * stage_row_bytes;
    }
  }
  for (std::int64_t j = 0; j < whole_columns; j += 4) {
    for (std::int64_t group = 0; group < whole_rows / 4; ++group) {
      std::uint8_t* const out[4] = {to[group][0] + 3 * j, to[group][1] + 3 * j,
                                    to[group][2] + 3 * j, to[group][3] + 3 * j};
      TransposeFour(from[group] + j * step, step, out);
    }
  }
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t begin = r < whole_rows ? whole_columns : 0;
    StageByPixel(source, map, first + r, begin, map.out_width, stage + r * stage_row_bytes);
  }
}

}  // namespace

void StageRows(const Strided& source, const WindowMap& map, std::int64_t first, std::int64_t count,
               std::uint8_t* stage, std::int64_t stage_row_bytes) {
  const bool fast = source.channels == 3 && ContiguousPixels(source);
  if (fast && map.transpose) {
    StageTransposed3(source, map, first, count, stage, stage_row_bytes);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    std::uint8_t* out = stage + r * stage_row_bytes;
    if (const RowInSource found = FindRow(source, map, first + r); found.row && !found.mirrored) {
      std::memcpy(out, found.row, static_cast<std::size_t>(map.out_width * source.channels));
    } else if (fast && map.reverse_x) {
      const PixelPlace last = SourceOf(map, first + r, map.out_width - 1);
      StageMirrored3(Pixel(source, last.y, last.x), map.out_width, out);
    } else {
      StageByPixel(source, map, first + r, 0, map.out_width, out);
    }
  }
}

RowInSource FindRow(const Strided& source, const WindowMap& map, std::int64_t row) {
  if (map.transpose || !ContiguousPixels(source)) return {};
  const PixelPlace place = SourceOf(map, row, map.reverse_x ? map.out_width - 1 : 0);
  return {Pixel(source, place.y, place.x), map.reverse_x};
}

void MirrorInPlace(const Strided& slice, const WindowMap& map, std::uint8_t* stage) {
  if (!map.reverse_x && !map.reverse_y) return;
  const std::int64_t row_bytes = slice.width * slice.channels;
  const auto stage_row = row_bytes + kStageSlack;
  const auto put = [&](std::int64_t row, const std::uint8_t* made) {
    std::memcpy(slice.data + row * slice.row_bytes, made, static_cast<std::size_t>(row_bytes));
  };
  // Rows that change places are staged together.
  const std::int64_t pairs = map.reverse_y ? slice.height / 2 : 0;
  for (std::int64_t y = 0; y < pairs; ++y) {
    const std::int64_t opposite = slice.height - 1 - y;
    StageRows(slice, map, y, 1, stage, stage_row);
    StageRows(slice, map, opposite, 1, stage + stage_row, stage_row);
    put(y, stage);
    put(opposite, stage + stage_row);
  }
  if (!map.reverse_x) return;
  for (std::int64_t y = pairs; y < slice.height - pairs; ++y) {
    StageRows(slice, map, y, 1, stage, stage_row);
    put(y, stage);
  }
}

}  // namespace patchbay::ops
