// Results of `labels import` and `labels tissue`: one label set of one store.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/json.h"

namespace patchbay::results {

/// A set of any kind. A dry run has no digest and what follows it.
struct LabelReport {
  std::string set = {}, format = {};
  std::string digest = {}, revision = {};
  std::optional<bool> already_there = {};
  std::optional<std::uint64_t> stored_bytes = {};
  std::string store = {}, file = {};  ///< paths, which the command adds

  static constexpr auto Fields() {
    using T = LabelReport;
    return AsObject(Field("set", &T::set).Required(), Field("format", &T::format).Required(),
                    Field("digest", &T::digest), Field("revision", &T::revision),
                    Field("already_there", &T::already_there),
                    Field("stored_bytes", &T::stored_bytes), Field("store", &T::store),
                    Field("file", &T::file));
  }
};

/// Pixels of level 0. Ignored classes have the pixels that were drawn of them.
struct ClassPixels {
  std::string name = {};
  int value = 0;
  std::int64_t outlines = 0;
  std::uint64_t pixels = 0;
  std::optional<double> area_mm2 = {};  ///< null without um/px

  static constexpr auto Fields() {
    using T = ClassPixels;
    return AsFullObject(Field("name", &T::name), Field("value", &T::value),
                        Field("outlines", &T::outlines), Field("pixels", &T::pixels),
                        Field("area_mm2", &T::area_mm2));
  }
};

/// The method that found tissue, which the set records, and its findings.
struct TissueReport {
  std::string profile = {};
  Json options = {};
  int level = 0;                   ///< the level that was averaged
  std::int64_t factor = 1;         ///< over squares of so many of its pixels
  std::optional<double> mpp = {};  ///< um per pixel of the mask
  bool areas = true;               ///< false: without mpp lengths and areas are left out
  std::string verdict = {};
  int threshold = 0;
  bool no_tissue = false;

  static constexpr auto Fields() {
    using T = TissueReport;
    return AsFullObject(Field("profile", &T::profile), Field("options", &T::options),
                        Field("level", &T::level), Field("factor", &T::factor),
                        Field("mpp", &T::mpp), Field("areas", &T::areas),
                        Field("verdict", &T::verdict), Field("threshold", &T::threshold),
                        Field("no_tissue", &T::no_tissue));
  }
};

/// A set of a slide. Found tissue has this alone.
struct SlideLabelReport : LabelReport {
  std::vector<ClassPixels> classes = {};  ///< in the table's order
  std::uint64_t ignored_pixels = 0;
  std::optional<TissueReport> tissue = {};

  static constexpr auto Fields() {
    using T = SlideLabelReport;
    return Extending<LabelReport>(AsObject(Field("classes", &T::classes).Required(),
                                           Field("ignored_pixels", &T::ignored_pixels).Required(),
                                           Field("tissue", &T::tissue)));
  }
};

/// A set of a slide from a file.
struct DrawnLabelReport : SlideLabelReport {
  std::int64_t without_area = 0;            ///< points and lines, left out
  std::int64_t skipped = 0;                 ///< outlines that the table's `skip` names
  std::int64_t outside = 0;                 ///< outlines wholly outside the slide, left out
  std::int64_t clipped = 0;                 ///< outlines partly outside the slide
  std::int64_t self_crossing = 0;           ///< outlines filled by the even-odd rule
  std::array<std::int64_t, 2> offset = {};  ///< (x, y), added to coordinates, in level-0 pixels

  static constexpr auto Fields() {
    using T = DrawnLabelReport;
    return Extending<SlideLabelReport>(
        AsFullObject(Field("without_area", &T::without_area), Field("skipped", &T::skipped),
                     Field("outside", &T::outside), Field("clipped", &T::clipped),
                     Field("self_crossing", &T::self_crossing), Field("offset", &T::offset)));
  }
};

struct ClassVoxels {
  std::string name = {};
  int value = 0;
  std::uint64_t voxels = 0;        ///< on the image's grid
  std::uint64_t drawn_voxels = 0;  ///< in the segmentation
  std::uint64_t lost_voxels = 0;   ///< drawn ones outside the image
  double volume_ml = 0;
  std::optional<std::uint64_t> components = {};  ///< null: not indexed

  static constexpr auto Fields() {
    using T = ClassVoxels;
    return AsFullObject(Field("name", &T::name), Field("value", &T::value),
                        Field("voxels", &T::voxels), Field("drawn_voxels", &T::drawn_voxels),
                        Field("lost_voxels", &T::lost_voxels), Field("volume_ml", &T::volume_ml),
                        Field("components", &T::components));
  }
};

/// A set of a volume.
struct VolumeLabelReport : LabelReport {
  std::vector<ClassVoxels> classes = {};  ///< in the table's order
  std::uint64_t ignored_voxels = 0;
  std::string grid = {};  ///< "same" as the image's, "resampled" onto it
  std::uint64_t covered_voxels = 0;
  std::uint64_t overlapping_voxels = 0;  ///< the segmentation's own voxels
  std::vector<std::string> skipped = {};
  std::map<std::string, std::uint64_t> left_out = {};  ///< contours without an area, by type
  std::string frame_of_reference = {};  ///< "matches", or "unknown" if either side has none

  static constexpr auto Fields() {
    using T = VolumeLabelReport;
    return Extending<LabelReport>(AsFullObject(
        Field("classes", &T::classes), Field("ignored_voxels", &T::ignored_voxels),
        Field("grid", &T::grid), Field("covered_voxels", &T::covered_voxels),
        Field("overlapping_voxels", &T::overlapping_voxels), Field("skipped", &T::skipped),
        Field("left_out", &T::left_out), Field("frame_of_reference", &T::frame_of_reference)));
  }
};

}  // namespace patchbay::results
