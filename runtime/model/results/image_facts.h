// The facts of an image that the plan of a stream used, as they travel from planning to the user.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/model/source/modality.h"

namespace patchbay::results {

inline constexpr std::size_t kMaxFactLevels = 64;
inline constexpr double kMaxFactSide = 2147483648;

using Matrix4 = std::array<std::array<double, 4>, 4>;

/// A channel of an image, as its store describes it.
struct ChannelFacts {
  std::string name;
  std::optional<Modality> modality;

  bool operator==(const ChannelFacts&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("name", &ChannelFacts::name).Required(),
                    Field("modality", &ChannelFacts::modality));
  }
};

/// Absent values are not known.
struct ImageFacts {
  std::vector<Extent> levels;  ///< pixels of each, the finest first
  /// Downsampling of each level against the finest: the mean of y and x. Empty: to be computed from
  /// the sizes, which saves space as there may be many images.
  std::vector<double> downsamples;
  std::optional<double> mpp;  ///< um/px of the finest level of a 2-D image
  /// Whether `mpp` is from the table and not from the file; `stated_mpp` is then the file's.
  bool mpp_corrected = false;
  std::optional<double> stated_mpp;
  std::optional<std::array<double, 3>> spacing_mm;  ///< spacing of a volume's finest level: z, y, x
  /// Rows of the matrix from voxel (x, y, z, 1) of a volume's finest level to millimetres in RAS.
  std::optional<Matrix4> affine;
  std::optional<Modality> modality;  ///< the table's, else the store's
  /// The channels of a patch, in order; empty: they have no names, or the image has one channel.
  std::vector<ChannelFacts> channels;

  void SetDownsamples(std::vector<double> of_levels);
  std::vector<double> Downsamples() const;
  Status Check() const;
  bool operator==(const ImageFacts&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("levels", &ImageFacts::levels)
                        .Required()
                        .Within(1, kMaxFactSide)
                        .Counted(1, kMaxFactLevels),
                    Field("downsamples", &ImageFacts::downsamples),
                    Field("mpp", &ImageFacts::mpp).Within(kPositive, kLargest),
                    Field("mpp_corrected", &ImageFacts::mpp_corrected),
                    Field("stated_mpp", &ImageFacts::stated_mpp).Within(kPositive, kLargest),
                    Field("spacing_mm", &ImageFacts::spacing_mm),
                    Field("affine", &ImageFacts::affine), Field("modality", &ImageFacts::modality),
                    Field("channels", &ImageFacts::channels));
  }
};

}  // namespace patchbay::results
