// OME-NGFF multiscales metadata, 0.4 (Zarr v2) and 0.5 (Zarr v3), as plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

struct NgffAxis {
  std::string name, type, unit;  ///< type and unit may be empty
};

struct NgffLevel {
  std::string path;                 ///< the array's, checked to lie below the store's folder
  std::vector<double> scale;        ///< one per axis; ones where metadata gives none
  std::vector<double> translation;  ///< zeros where metadata gives none
};

/// One image in several resolutions; scales have a value for each of `axes`.
struct Multiscales {
  std::string version;
  std::vector<NgffAxis> axes;
  std::vector<NgffLevel> levels;  ///< as listed: finest first
};

inline constexpr std::size_t kMaxLevels = 64;

/// From the attributes of a group. NotFound: no multiscales; InvalidArgument: malformed;
/// Unimplemented: a version or transform we do not read.
StatusOr<Multiscales> ParseMultiscales(const Json& attributes, std::string_view what);

/// Reads the group at `store` and parses its multiscales.
StatusOr<Multiscales> ReadMultiscales(const Folders& allowed, const std::string& store);

}  // namespace patchbay::zarr
