// Options of the jobs of `patchbay labels`: their flags, and the payloads of their tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
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

/// A label set as a file for other programs (label_formats.h).
struct LabelsExportOptions {
  std::string set, to;
  std::string origin = "bounds";   ///< place of (0, 0) in the outlines
  std::optional<double> smooth;    ///< um that outlines may move by
  std::optional<double> min_area;  ///< um2 of the least outline and the least hole
  std::optional<std::int64_t> level;

  std::vector<Option> Options();
  /// InvalidArgument without a format, and for an option of another one.
  Status Check() const;
};

/// Old revisions of label sets, taken out of stores.
struct LabelsPruneOptions {
  std::string set;  ///< "": of all sets
  bool dry_run = false;

  std::vector<Option> Options();
};

}  // namespace patchbay
