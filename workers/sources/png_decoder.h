// PNG pictures through libpng.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::workers {

struct PngHeader {
  std::int64_t height = 0, width = 0;
  int channels = 0;  ///< 1 or 3 once decoded
};

/// Unimplemented for 16 bits and transparency; DataLoss for a damaged header.
StatusOr<PngHeader> ReadPngHeader(std::span<const std::byte> bytes);

/// All pixels into `out`, rows one after another, samples interleaved; nothing is corrected by
/// gamma or profile. DataLoss for what libpng calls an error, checksums of chunks included, and a
/// header other than `expected`.
Status DecodePng(std::span<const std::byte> bytes, const PngHeader& expected,
                 std::vector<std::uint8_t>& out);

}  // namespace patchbay::workers
