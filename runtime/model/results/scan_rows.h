// The result of `scan`: a row for every image below the named paths, from headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::results {

/// A slide, a store, or a volume; of one that cannot be read only path and verdict. Text that is
/// not known is "".
struct ScanRow {
  std::string path = {};     ///< SplitSeriesPath has that of a series of several files
  std::string verdict = {};  ///< "ok", "mask", a volume's verdict, or why it cannot be read
  std::string reason = {};   ///< explains the verdict of a volume or a mask
  std::string kind = {};
  std::optional<double> mpp = {};
  std::optional<std::int64_t> slices = {}, height = {}, width = {};
  std::optional<std::uint64_t> source_bytes = {}, estimated_bytes = {};
  std::string content_hash = {};                      ///< a store has that of its source
  bool is_series = false;                             ///< a volume, whatever its verdict
  std::string patient = {}, study = {}, series = {};  ///< pseudonyms
  std::optional<double> thickness_mm = {}, step_mm = {}, pixel_mm = {};
  std::string kernel = {};
  std::string contrast = {};     ///< "yes", "no"
  std::string orientation = {};  ///< "axial", "coronal", "sagittal", "oblique"
  std::string use = {};          ///< "0" of a mask
  std::string modality = {};     ///< Modality::ToString

  bool IsMask() const { return verdict == "mask"; }

  static constexpr auto Fields() {
    using T = ScanRow;
    return AsObject(
        Field("path", &T::path).Required(), Field("verdict", &T::verdict).Required(),
        Field("reason", &T::reason), Field("kind", &T::kind), Field("mpp", &T::mpp),
        Field("slices", &T::slices), Field("height", &T::height), Field("width", &T::width),
        Field("source_bytes", &T::source_bytes), Field("estimated_bytes", &T::estimated_bytes),
        Field("content_hash", &T::content_hash), Field("is_series", &T::is_series),
        Field("patient", &T::patient), Field("study", &T::study), Field("series", &T::series),
        Field("thickness_mm", &T::thickness_mm), Field("step_mm", &T::step_mm),
        Field("pixel_mm", &T::pixel_mm), Field("kernel", &T::kernel),
        Field("contrast", &T::contrast), Field("orientation", &T::orientation),
        Field("use", &T::use), Field("modality", &T::modality));
  }
};

struct ScanRows {
  std::vector<ScanRow> images = {};
  FilesByKind skipped_files = {};  ///< files in the folders that are no images

  static constexpr auto Fields() {
    return AsObject(Field("images", &ScanRows::images),
                    Field("skipped_files", &ScanRows::skipped_files));
  }
};

}  // namespace patchbay::results
