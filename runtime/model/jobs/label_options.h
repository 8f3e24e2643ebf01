// Options of the jobs of `patchbay labels`: their flags, and the payloads of their tasks.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/jobs/option.h"

namespace patchbay {

/// Annotations to a label set. Payloads also have the class table and the sites of the rows.
struct LabelsImportOptions {
  std::string set;
  std::string origin = "auto";  ///< place of (0, 0) in the annotations
  bool clip = false;            ///< voxels outside a volume may be lost, however many
  bool dry_run = false;

  std::vector<Option> Options();
};

/// A label set of where slides hold tissue. The key "profile" of a payload tells it from an import.
struct LabelsTissueOptions {
  std::string set = "tissue", profile = "clam";

  std::vector<Option> Options();
};

/// A label set back to outlines or a mask.
struct LabelsExportOptions {
  std::string set, to = "geojson";
  std::string origin = "bounds";  ///< place of (0, 0) in the outlines

  std::vector<Option> Options();
};

/// Old revisions of label sets, taken out of stores.
struct LabelsPruneOptions {
  std::string set;  ///< "": of all sets
  bool dry_run = false;

  std::vector<Option> Options();
};

}  // namespace patchbay
