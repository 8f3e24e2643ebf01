// The common part of the study's architectures: how they are started and what they report.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "runtime/core/status.h"

namespace patchbay::bench {

inline constexpr int kFrame = 256, kHop = 128, kKept = kFrame - kHop;
inline constexpr int kHalfColumns = kFrame / 2 + 1;
/// Rows of a spectrum begin on whole vectors: FFTW is a fifth faster than with 129 in a row.
inline constexpr int kRowStride = 132, kSpectrum = kFrame * kRowStride;
inline constexpr int kBins = 640;
inline constexpr double kBinDb = 0.25;

struct RivalOptions {
  std::string slide;
  int cores = 2;
  std::int64_t strip_rows = 256;  ///< read at a time
  bool reads_ahead = false;       ///< strip N + 1 is read while N is computed
  bool own_reader = false;        ///< tiles by our reader instead of OpenSlide's regions
};

/// The findings and their cost. Sums run over the full plane of coefficients.
struct Outcome {
  std::int64_t frames = 0;
  double sum_db = 0, squares_db = 0;
  std::array<std::int64_t, kBins> counts{};
  std::int64_t copied_bytes = 0;  ///< pixels moved from one place in memory to another as they are

  void Add(const Outcome& other);
};

/// Producers in processes of their own: regions decoded on the host, frames cut and serialised into
/// messages, copied into a pipe and out of it; consumers transform them. One pair for each core.
StatusOr<Outcome> RunArchitectureA(const RivalOptions& options);

/// One process: strips are read into place and frames transformed from there. B reads a strip, then
/// computes it, on all cores each; B+ (`reads_ahead`) reads the next one meanwhile.
StatusOr<Outcome> RunArchitectureB(const RivalOptions& options);

/// Seconds of one core for each frame, with all cores at it: tile decode, FFTW and statistics
/// alone.
struct FloorTimes {
  std::int64_t frames = 0;
  double decode_s = 0, fft_s = 0, statistics_s = 0;
  double op_s = 0;  ///< the op itself over grey pixels in memory
};
StatusOr<FloorTimes> MeasureFloor(const RivalOptions& options);

/// The first `rows` pixel rows of a slide's finest level, its tiles as they are.
Status CropSlide(const std::string& slide, std::int64_t rows, const std::string& path);

}  // namespace patchbay::bench
