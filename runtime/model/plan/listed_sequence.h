// The order of a table of places, where a sequential epoch follows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"

namespace patchbay::plan {

/// Places of one image that follow one another in a table.
struct ListedRun {
  std::uint32_t image = 0;  ///< its number
  std::uint32_t places = 0;
  bool operator==(const ListedRun&) const = default;
};

/// Adds places to the last run, or begins another.
void AppendListed(std::uint32_t image, std::uint32_t places, std::vector<ListedRun>& runs);

/// Numbers and counts as varints, in base64: two bytes per run of few images.
std::string EncodeListedRuns(std::span<const ListedRun> runs);
/// InvalidArgument for anything but the output of EncodeListedRuns for runs that AppendListed made,
/// and for more than kMaxListedPositions places.
StatusOr<std::vector<ListedRun>> DecodeListedRuns(std::string_view text);

/// The place of every patch of a sequential epoch. Immutable.
class ListedSequence {
 public:
  /// How many places an image lists, and how many of them an epoch has.
  struct Count {
    std::uint64_t listed = 0, taken = 0;
  };
  struct Place {
    std::uint32_t image = 0;
    std::uint64_t number = 0;  ///< index among the image's places
  };

  /// The images' places in the table's order, or image by image where there are no `runs`. If an
  /// image has fewer places taken than listed, `seed` chooses them: the same in every epoch, in the
  /// table's order. nullopt if the sequence is every place, image by image. InvalidArgument when
  /// the runs do not have all places of the images.
  static StatusOr<std::optional<ListedSequence>> Of(std::span<const ListedRun> runs,
                                                    std::span<const Count> counts,
                                                    std::uint64_t seed);

  /// Requires an ordinal below the sum of the places taken. Logarithmic in the runs.
  Place At(std::uint64_t ordinal) const;
  /// The ordinal of an image's last place; nothing for an image without any.
  std::optional<std::uint64_t> LastOf(std::uint32_t image) const;
  /// How many patches of one image follow one another, run by run.
  std::vector<std::uint64_t> RunLengths() const;
  /// EncodeListedRuns of all places, including places that are not taken.
  const std::string& Text() const { return text_; }

 private:
  struct Stretch {
    std::uint32_t ordinal = 0;  ///< ordinal of the first patch
    std::uint32_t image = 0;
    std::uint32_t number = 0;  ///< index of that patch among the image's taken places
  };
  void Add(std::uint32_t image, std::uint32_t number, std::uint32_t places);

  std::vector<Stretch> stretches_;
  std::vector<std::vector<std::uint32_t>> chosen_;  ///< by image, ascending; empty: all
  std::vector<std::uint32_t> taken_;                ///< places taken, by image
  std::vector<std::uint32_t> last_;                 ///< LastOf of each image
  std::uint32_t patches_ = 0;
  std::string text_;
};

}  // namespace patchbay::plan
