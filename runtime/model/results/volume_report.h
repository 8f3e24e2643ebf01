// The report of `patchbay inspect` on volumes that are not ingested: a file, or a folder of series.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/model/source/file_kind.h"
#include "runtime/model/source/modality.h"

namespace patchbay::results {

/// One volume, as ingest would store it. One that cannot be read has no shape and what follows it.
struct VolumeReport {
  std::string name = {};
  std::string format = {};
  std::uint64_t files = 0;
  std::string verdict = {}, reason = {};  ///< a DICOM series has them
  std::string error = {};                 ///< why it cannot be read
  std::optional<bool> damaged = {};  ///< with an error: false of a series refused for its verdict
  std::optional<Extent> shape = {};
  std::optional<DType> dtype = {};
  std::vector<zarr::AxisReport> spacing = {};
  std::string orientation = {};
  std::optional<zarr::RangeReport> value_range = {};
  std::string not_finite = {};  ///< voxels that are NaN or infinite
  Json affine_lps = {}, acquisition = {};
  std::optional<Modality> modality = {};

  static constexpr auto Fields() {
    using T = VolumeReport;
    return AsObject(Field("name", &T::name).Required(), Field("format", &T::format).Required(),
                    Field("files", &T::files).Required(), Field("verdict", &T::verdict),
                    Field("reason", &T::reason), Field("error", &T::error),
                    Field("damaged", &T::damaged), Field("shape", &T::shape),
                    Field("dtype", &T::dtype), Field("spacing", &T::spacing),
                    Field("orientation", &T::orientation), Field("value_range", &T::value_range),
                    Field("not_finite", &T::not_finite), Field("affine_lps", &T::affine_lps),
                    Field("acquisition", &T::acquisition), Field("modality", &T::modality));
  }
};

struct VolumesReport {
  std::vector<VolumeReport> volumes = {};
  std::uint64_t other_dicom_files = 0;
  FilesByKind skipped_files = {};  ///< files in the folder that belong to no volume

  static constexpr auto Fields() {
    using T = VolumesReport;
    return AsFullObject(Field("volumes", &T::volumes),
                        Field("other_dicom_files", &T::other_dicom_files),
                        Field("skipped_files", &T::skipped_files));
  }
};

}  // namespace patchbay::results
