// The markers of one grey JPEG or JPEG-LS image, read before a decoder sees it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::workers {

struct JpegHuffmanTable {
  std::array<std::uint8_t, 16> counts{};  ///< codes of 1 to 16 bits
  std::vector<std::uint8_t> values;       ///< in the order of their codes
};

inline constexpr int kJpegLossless = 3, kJpegLs = 55;

/// Values from the markers; in an image of several scans, from the last scan.
struct JpegMarkers {
  int process = -1;  ///< n of SOFn: 0 baseline, 1 extended, 2 progressive, 3 lossless, 55 JPEG-LS
  int precision = 0, components = 0;
  std::int64_t rows = 0, columns = 0;
  int scans = 0, restart_interval = 0;
  int scan_components = 0, dc_table = 0, ac_table = 0;
  int first = 0, last = 0;  ///< band of coefficients; `first` in lossless: predictor, JPEG-LS: NEAR
  int quantization_table = 0;
  std::array<std::optional<JpegHuffmanTable>, 4> dc, ac;
  std::array<int, 4> dc_step{};      ///< first entry of each quantization table; 0: not defined
  std::span<const std::byte> codes;  ///< with stuffed bytes and restart markers
};

/// Walks the markers from the first to the last byte. DataLoss where they do not follow one
/// another, where samples have more than 16 bits, where the end is missing, and where more than
/// padding follows it. `bytes` must outlive the result.
StatusOr<JpegMarkers> ReadJpegMarkers(std::span<const std::byte> bytes);

/// Whether bytes after the end of an image may stand there: zeros, or one byte that makes a
/// fragment even, which some writers leave as it was in memory.
bool IsPadding(std::span<const std::byte> bytes);

/// Reads the codes of a baseline, extended or lossless image of one component and one scan, without
/// decoding it, and checks what decoders do not: every code is in its table, every block has 64
/// coefficients with a DC value that samples can have, and codes, restart markers and padding end
/// where the image ends, to the bit. DataLoss where they do not. Other processes are not checked.
Status CheckJpegCodes(const JpegMarkers& image);

}  // namespace patchbay::workers
