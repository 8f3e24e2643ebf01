// Coefficients of a JPEG image to samples, and samples to pixels: bit for bit as libjpeg-turbo does
// it with its accurate integer transform and fancy upsampling, overflows of damaged data included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace patchbay::tiles {

/// Two blocks of coefficients, in rows of 8.
struct alignas(32) BlockPair {
  std::int16_t value[2][64];
};

/// Writes the samples of the first block to 8 rows at `out` and those of the second beside them.
/// `steps`: the quantisation of a block, in rows.
void TransformPair(const BlockPair& blocks, const std::int16_t* steps, std::uint8_t* out,
                   std::ptrdiff_t stride);

/// The same for blocks without other coefficients than the first.
void FillPair(const BlockPair& blocks, const std::int16_t* steps, std::uint8_t* out,
              std::ptrdiff_t stride);

/// Writes two samples for each of `samples` at `row`, by their distance; `row` has a sample more on
/// either side. `out` takes up to 32 bytes more.
void DoubleColumns(const std::uint8_t* row, std::int64_t samples, std::uint8_t* out);

/// The same, between the row the new one is nearest to and the one beyond.
void DoubleColumnsBetween(const std::uint8_t* near, const std::uint8_t* far, std::int64_t samples,
                          std::uint8_t* out);

/// In place: brightness to red, blue difference to green, red difference to blue. The rows take up
/// to 16 bytes more.
void ToRgb(std::uint8_t* first, std::uint8_t* second, std::uint8_t* third, std::int64_t pixels);

/// out[3 i], out[3 i + 1], out[3 i + 2] = first[i], second[i], third[i].
void InterleaveRow(const std::uint8_t* first, const std::uint8_t* second, const std::uint8_t* third,
                   std::int64_t pixels, std::uint8_t* out);

}  // namespace patchbay::tiles
