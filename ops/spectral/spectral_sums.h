// The sums of spectral: integers only, so that merging is addition and order cannot change a bit. A
// part of spectral.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/numeric/int128.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/spectral_options.h"

namespace patchbay::ops {

inline constexpr int kSpectralBins = 640;
inline constexpr double kSpectralBinDb = 0.25;  ///< bin i holds q / 1024 in [i, i + 1) * 0.25 dB
inline constexpr int kSpectralSteps = 1024;     ///< steps of q in one dB
/// A ring's power is added in units of 2^-14, rounded to nearest once or more a frame. A frame's
/// power without X[0,0] is below 2^46 for a frame of 256 and 2^50 for 512 (Parseval).
inline constexpr int kRingFractionBits = 14;

/// The most frames that one set of sums counts. At hop 128 they are 10^15 pixels; the bound keeps
/// every counter far from overflow and Encode within kMaxSpectralSumsBytes.
inline constexpr std::uint64_t kMaxSpectralFrames = std::uint64_t{1} << 36;
/// The limit where every coefficient has its own sums of 64 bits.
inline constexpr std::uint64_t kMaxCoefficientFrames = std::uint64_t{1} << 29;
inline constexpr std::size_t kMaxSpectralSumsBytes = 8192;

/// The statistics of one channel over some frames. A value: copy, merge, send.
struct SpectralSums {
  explicit SpectralSums(const plan::SpectralOptions& options);

  std::uint64_t frames = 0;
  absl::uint128 sum_q = 0;                               ///< sum of weight * q
  absl::uint128 sum_qq = 0;                              ///< sum of weight * q^2
  std::array<std::uint64_t, kSpectralBins> histogram{};  ///< weights by bin
  /// Ring k holds the coefficients with rint(sqrt(ky^2 + kx^2)) == k, 0 < k <= frame / 2, ky and kx
  /// signed; corners beyond are left out. |X|^2 times weight, scaled. Index 0 (the mean) is not
  /// used.
  std::vector<absl::uint128> ring_power;
  /// Row-major frame x (frame / 2 + 1), unweighted; empty unless options.coefficients.
  std::vector<std::uint64_t> coefficient_q, coefficient_qq;

  bool operator==(const SpectralSums&) const = default;
};

/// Adds `from` to `into`. InvalidArgument when they were made for different frame sizes, or when
/// only one has coefficient arrays; ResourceExhausted when there would be more than
/// kMaxSpectralFrames or a counter would overflow. `into` is unchanged then.
Status Merge(const SpectralSums& from, SpectralSums& into);

/// Compact bytes without the coefficient arrays: at most kMaxSpectralSumsBytes for any counts. The
/// same sums give the same bytes.
std::string Encode(const SpectralSums& sums);
/// Undoes Encode for `options`; the coefficient arrays, if any, are 0. DataLoss on anything Encode
/// did not write, and on counts that contradict each other.
StatusOr<SpectralSums> Decode(std::string_view bytes, const plan::SpectralOptions& options);

/// The coefficient arrays as bytes (little-endian, checksummed), for a file; and back into sums
/// made for coefficients. DataLoss, with `sums` unchanged, unless the bytes are of as many frames
/// of the same size.
std::string EncodeCoefficients(const SpectralSums& sums);
Status DecodeCoefficients(std::string_view bytes, SpectralSums& sums);

/// Figures for people, computed in double from exact sums. All are 0 without a frame.
double MeanDb(const SpectralSums& sums);
double StdDb(const SpectralSums& sums);  ///< deviation of the population
/// The level below which `fraction` (0 to 1) of the coefficients lie, linear within a bin.
double PercentileDb(const SpectralSums& sums, double fraction);
/// Mean |X|^2 of each ring per coefficient, index 0 (unused) to frame / 2; divide by frame^2 (rect)
/// or by the sum of w^2 for a power spectral density. Ring k lies at k / frame cycles per pixel.
std::vector<double> RingMeans(const SpectralSums& sums);
/// Coefficients (full plane) in each ring of a frame; index 0 to frame / 2.
std::vector<std::int64_t> RingCounts(int frame);
/// How sharp: 10 log10 of the mean power at 0.25 to 0.5 cycles per pixel over that at 1/32 to 1/8.
/// Larger means sharper; blur lowers it. Within -150 to 150; -150 for images without detail, 0
/// without a frame.
double FocusDb(const SpectralSums& sums, const plan::SpectralOptions& options);

}  // namespace patchbay::ops
