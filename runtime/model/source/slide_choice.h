// The part of a DICOM slide that is taken: one of its focal planes, one of its optical paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"

namespace patchbay {

/// The columns of a table, for `ingest` and streams, by which a row makes the choice.
inline constexpr char kFocalPlaneColumn[] = "focal_plane";
inline constexpr char kOpticalPathColumn[] = "optical_path";

/// The largest height of a focal plane that a table may name, um.
inline constexpr double kLargestFocalUm = 1e5;
/// Heights that differ by less are one focal plane, um: files state them as decimal numbers.
inline constexpr double kSameFocalUm = 1e-3;

struct SlideChoice {
  std::optional<double> focal_plane;  ///< its height, um; absent: there is one
  std::string optical_path;           ///< its identifier or description; "": all

  bool IsMade() const { return focal_plane || !optical_path.empty(); }
  /// "focal plane at 1.5 um, optical path DAPI"; "" where none is made.
  std::string ToString() const;
  /// Whether another choice takes the same part, as far as their texts tell.
  bool IsSameAs(const SlideChoice& other) const;
  bool operator==(const SlideChoice&) const = default;
  static constexpr auto Fields() {
    using T = SlideChoice;
    return AsObject(
        Field(kFocalPlaneColumn, &T::focal_plane).Within(-kLargestFocalUm, kLargestFocalUm),
        Field(kOpticalPathColumn, &T::optical_path));
  }
};

/// The key of an ingest's payload that has a list of these.
inline constexpr char kChoicesOfRows[] = "choices";

/// A choice, and the numbers of the sources that it is for.
struct ChoiceOfRows : SlideChoice {
  std::vector<std::uint64_t> sources;

  static constexpr auto Fields() {
    return Extending<SlideChoice>(AsObject(Field("sources", &ChoiceOfRows::sources).Required()));
  }
};

/// The height in a cell of kFocalPlaneColumn; none in an empty one.
StatusOr<std::optional<double>> ParseFocalPlane(std::string_view cell);

}  // namespace patchbay
