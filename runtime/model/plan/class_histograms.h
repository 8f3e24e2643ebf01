// Histograms of Hounsfield units, one per class. Statistics over a dataset's foreground are summed
// from them. Stored with the label image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::plan {

/// The file's name in the folder of a revision of a label set. Further channels of the image have
/// histograms_1.index and so on.
inline constexpr char kClassHistogramsFile[] = "histograms.index";
std::string ClassHistogramsFileOf(std::size_t channel);
inline constexpr std::size_t kMaxClassHistogramsBytes = std::size_t{64} << 20;

/// Counts by int16 value; values without voxels are absent. A value type; to merge, add.
using HuHistogram = std::map<std::int16_t, std::uint64_t>;

struct ClassHistogram {
  std::uint8_t value = 0;
  std::string name;
  HuHistogram counts;

  bool operator==(const ClassHistogram&) const = default;
};

/// Histograms of one image, at level 0; values of a float volume are rounded to the nearest int16.
struct ClassHistograms {
  std::vector<ClassHistogram> classes;  ///< sorted by value

  const ClassHistogram* Find(std::string_view name) const;
  /// Adds the histograms of another image. InvalidArgument when a value has another name there.
  Status Merge(const ClassHistograms& other);
  bool operator==(const ClassHistograms&) const = default;
};

/// A compact text with a checksum at its end; equal histograms give equal bytes.
std::string EncodeClassHistograms(const ClassHistograms& histograms);
/// InvalidArgument for anything but the output of EncodeClassHistograms; DataLoss when the checksum
/// differs.
StatusOr<ClassHistograms> DecodeClassHistograms(std::string_view text);

}  // namespace patchbay::plan
