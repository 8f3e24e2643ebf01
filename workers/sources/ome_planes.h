// The planes and channels that OME-XML states for the first image of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::workers {

struct OmeChannel {
  std::string name;          ///< as stated; empty: not stated
  std::int64_t samples = 1;  ///< SamplesPerPixel
};

/// A TiffData element: `count` planes from channel `first` on lie in the directories from
/// `directory` on.
struct OmePlaneRun {
  std::int64_t first = 0;
  std::int64_t directory = 0;
  std::optional<std::int64_t> count;  ///< nothing: as many as there are
  bool is_elsewhere = false;          ///< in a file with another UUID
};

/// Attributes of the first `Pixels` element; sizes that are not stated or no numbers are 1.
struct OmePlanes {
  std::int64_t size_c = 1, size_z = 1, size_t_ = 1;
  std::vector<OmeChannel> channels;
  std::vector<OmePlaneRun> runs;
};

/// Nothing for a description without `Pixels`.
std::optional<OmePlanes> ParseOmePlanes(std::string_view description);

/// The directory of every plane of an image whose directories have `samples` samples a pixel, of
/// `directories` in the file. InvalidArgument for sizes, planes and files that contradict one
/// another, Unimplemented for focal planes, time points and planes in other files.
StatusOr<std::vector<std::size_t>> DirectoriesOfPlanes(const OmePlanes& planes,
                                                       std::int64_t samples,
                                                       std::size_t directories);

/// `count` names that are unique, not empty, printable and at most 64 bytes: the stated ones as far
/// as they are, "NAME (2)" where one is repeated, "channel N" elsewhere.
std::vector<std::string> UniqueChannelNames(const std::vector<std::string>& stated,
                                            std::size_t count);

}  // namespace patchbay::workers
