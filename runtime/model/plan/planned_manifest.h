// The manifest of a plan's images, which only workers and the user see: their paths, and stamps
// that later show whether they are still as planned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/format/json/json.h"

namespace patchbay::plan {

/// The folder that all paths lie in, with a slash at its end.
std::string SharedFolder(const std::vector<std::string>& paths);
/// Paths without their first `root.size()` bytes.
std::vector<std::string> PathsBelow(const std::string& root, std::vector<std::string> paths);

/// One value per image, in the plan's order: short, as there may be many.
struct PlannedManifest {
  std::string root = {};                 ///< SharedFolder
  std::vector<std::string> images = {};  ///< PathsBelow
  std::vector<std::string> stamps = {};  ///< stamps of the files, taken before the digest
  std::vector<std::uint64_t> rows = {};  ///< numbers in the list of the root task; of a table alone
  Json facts = Json::array();            ///< results::ImageFacts of each
  /// um/px of `image`: one number if all images have the same, else one per image; null: not known.
  Json mpp = {};
  std::uint64_t mpp_assumed = 0;            ///< images that have it from `ingest --assume-mpp`
  std::uint64_t stains_of_tissue = 0;       ///< images whose stain fit is of their label set
  std::vector<std::string> functions = {};  ///< files of own functions, in the plan's order

  static PlannedManifest Of(const std::vector<std::string>& paths, std::vector<std::string> stamps);
  std::vector<std::string> Paths() const;
  static constexpr auto Fields() {
    return AsObject(Field("root", &PlannedManifest::root).Required(),
                    Field("images", &PlannedManifest::images).Required(),
                    Field("stamps", &PlannedManifest::stamps).Required(),
                    Field("rows", &PlannedManifest::rows), Field("facts", &PlannedManifest::facts),
                    Field("mpp", &PlannedManifest::mpp),
                    Field("mpp_assumed", &PlannedManifest::mpp_assumed),
                    Field("stains_of_tissue", &PlannedManifest::stains_of_tissue),
                    Field("functions", &PlannedManifest::functions));
  }
};

}  // namespace patchbay::plan
