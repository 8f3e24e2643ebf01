// The facts of an image that the plan of a stream used, as they travel from planning to the user.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::results {

inline constexpr std::size_t kMaxFactLevels = 64;

using Matrix4 = std::array<std::array<double, 4>, 4>;

/// Absent values are not known.
struct ImageFacts {
  std::vector<Extent> levels;       ///< pixels of each, the finest first
  std::vector<double> downsamples;  ///< of each against the finest: the mean of y and x
  std::optional<double> mpp;        ///< um/px of the finest level of a 2-D image
  /// Whether `mpp` is the table's and not the file's, and what the file says then.
  bool mpp_corrected = false;
  std::optional<double> stated_mpp;
  std::optional<std::array<double, 3>> spacing_mm;  ///< of a volume's finest level: z, y, x
  /// Rows of the matrix from voxel (x, y, z, 1) of a volume's finest level to millimetres in RAS.
  std::optional<Matrix4> affine;

  bool operator==(const ImageFacts&) const = default;
};

/// A 2-D level has two numbers; downsamples that the sizes give are left out: a plan may have many
/// images.
Json ToJson(const ImageFacts& facts);
/// A list of four rows; nullopt for what is none.
std::optional<Matrix4> AffineFromJson(const Json& rows);
/// InvalidArgument for what ToJson does not give.
StatusOr<ImageFacts> ImageFactsFromJson(const Json& value);

}  // namespace patchbay::results
