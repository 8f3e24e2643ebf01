// The report of `patchbay inspect` on an image: a store by its metadata and file sizes, or a slide.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// Spacing along an axis; value and unit are null where it is unknown.
struct AxisReport {
  std::string axis;
  std::optional<double> value;
  std::optional<std::string> unit;

  static constexpr auto Fields() {
    using T = AxisReport;
    return AsFullObject(Field("axis", &T::axis), Field("value", &T::value),
                        Field("unit", &T::unit));
  }
};

/// The values of a volume; null where voxels are not finite.
struct RangeReport {
  std::optional<double> min, max, mean;

  static constexpr auto Fields() {
    using T = RangeReport;
    return AsFullObject(Field("min", &T::min), Field("max", &T::max), Field("mean", &T::mean));
  }
};

struct LevelReport {
  std::vector<std::int64_t> shape, chunk;  ///< along all axes of the array
  double downsample = 1;

  static constexpr auto Fields() {
    using T = LevelReport;
    return AsFullObject(Field("shape", &T::shape), Field("chunk", &T::chunk),
                        Field("downsample", &T::downsample));
  }
};

/// The device that scanned a slide, as its file states it; "" where it does not.
struct ScannerReport {
  std::string manufacturer = {}, model = {};
  std::string scanned_at = {};  ///< only where it was asked for

  bool operator==(const ScannerReport&) const = default;
  static constexpr auto Fields() {
    using T = ScannerReport;
    return AsObject(Field("manufacturer", &T::manufacturer), Field("model", &T::model),
                    Field("scanned_at", &T::scanned_at));
  }
};

/// The file that an image was made from, or is.
struct SourceReport {
  std::optional<std::string> kind;
  std::optional<std::uint64_t> bytes;

  static constexpr auto Fields() {
    using T = SourceReport;
    return AsFullObject(Field("kind", &T::kind), Field("bytes", &T::bytes));
  }
};

/// Facts in attributes.patchbay of a store that a report repeats; none of other writers' stores.
struct RecordedFacts {
  std::optional<double> mpp_assumed = {};  ///< um per pixel that the user gave
  Json affine_lps = {}, affine_ras = {};   ///< a volume's
  std::string orientation = {};
  Json acquisition = {};
  Json modality = {};  ///< ModalityRecord
  /// Channels of a volume that has several: each with name, modality, value range and more, but
  /// without counts.
  Json channels = {};
  std::optional<RangeReport> value_range = {};
  Json slice_table = {}, stain = {}, stain_srgb = {};
  Json icc_to_srgb = {};  ///< without the values of the lookup, which its digest identifies
  Json transform_log = {};
  std::vector<std::string> warnings = {};

  static constexpr auto Fields() {
    using T = RecordedFacts;
    return AsObject(Field("mpp_assumed", &T::mpp_assumed), Field("affine_lps", &T::affine_lps),
                    Field("affine_ras", &T::affine_ras), Field("orientation", &T::orientation),
                    Field("acquisition", &T::acquisition), Field("modality", &T::modality),
                    Field("channels", &T::channels), Field("value_range", &T::value_range),
                    Field("slice_table", &T::slice_table), Field("stain", &T::stain),
                    Field("stain_srgb", &T::stain_srgb), Field("icc_to_srgb", &T::icc_to_srgb),
                    Field("transform_log", &T::transform_log), Field("warnings", &T::warnings));
  }
};

/// The object that `patchbay inspect --json` prints for an image.
struct ImageReport : RecordedFacts {
  std::optional<std::string> digest = {}, pixel_digest = {};
  SourceReport source = {};
  std::uint64_t stored_bytes = 0;
  std::vector<std::string> axes = {};  ///< empty for a slide, as dtype and spacing
  std::string dtype = {};
  std::string codec = {};  ///< where chunks are a slide's tiles: the codec that reads them
  std::vector<std::string> channel_names = {};    ///< in the order of the axis
  std::vector<std::string> label_sets = {};       ///< names
  std::optional<double> objective_power = {};     ///< as the scanner states it
  ScannerReport scanner = {};                     ///< a slide's
  std::string icc = {};                           ///< a slide's profile: "usable" or "unusable"
  std::vector<LevelReport> levels = {};           ///< finest first
  std::vector<AxisReport> spacing = {};           ///< level 0's
  std::optional<std::array<double, 2>> mpp = {};  ///< um per pixel of level 0 along y and x

  static constexpr auto Fields() {
    using T = ImageReport;
    return Extending<RecordedFacts>(AsObject(
        Field("digest", &T::digest).Required(), Field("pixel_digest", &T::pixel_digest).Required(),
        Field("source", &T::source).Required(), Field("stored_bytes", &T::stored_bytes).Required(),
        Field("axes", &T::axes), Field("dtype", &T::dtype), Field("codec", &T::codec),
        Field("channel_names", &T::channel_names), Field("label_sets", &T::label_sets),
        Field("objective_power", &T::objective_power), Field("scanner", &T::scanner),
        Field("icc", &T::icc), Field("levels", &T::levels).Required(),
        Field("spacing", &T::spacing), Field("mpp", &T::mpp).Required()));
  }
};

/// Reads metadata and file sizes only. InvalidArgument for metadata that is malformed.
StatusOr<ImageReport> InspectStore(const Folders& allowed, const std::string& store);

}  // namespace patchbay::zarr
