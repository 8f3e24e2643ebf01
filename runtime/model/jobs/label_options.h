// Options of the jobs of `patchbay labels`: their flags, and the payloads of their tasks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/model/jobs/option.h"

namespace patchbay {

/// The keys of a payload of `labels import`, `tissue` and `majority` beside their options.
struct LabelsPayload {
  Json classes = {};       ///< plan::ClassTable of the annotations; null: tissue is looked for
  std::uint64_t row = 0;   ///< number of the row in the manifest
  std::string store = {};  ///< for an ingest: name of the one store in the job's folder
  std::optional<std::uint64_t> slide = {};  ///< for an ingest: number of the store's slide
  std::vector<std::string> sets = {};       ///< not empty: their majority is taken

  static constexpr auto Fields() {
    using T = LabelsPayload;
    return AsObject(Field("classes", &T::classes), Field("row", &T::row), Field("store", &T::store),
                    Field("slide", &T::slide), Field("sets", &T::sets));
  }
};

/// Annotations to a label set.
struct LabelsImportOptions {
  std::string set;
  std::string origin = "auto";  ///< place of (0, 0) in the annotations
  std::string class_from;       ///< property of GeoJSON with the class; "": the classification
  bool clip = false;            ///< voxels outside a volume may be lost, however many
  bool dry_run = false;

  std::vector<Option> Options();
};

/// As `ingest --tissue` and `labels tissue --profile` take them.
inline std::vector<std::string> TissueProfiles() {
  return {"clam", "tiatoolbox", "histolab", "ihc"};
}

/// A label set of where slides hold tissue.
struct LabelsTissueOptions {
  std::string set = "tissue", profile = "clam";
  std::vector<std::string> options = {};  ///< "closing=40": ParseTissueOptions

  std::vector<Option> Options();
  /// InvalidArgument for an option that is none.
  Status Check() const;
};

/// A label set of the class that most of several sets give each pixel.
struct LabelsMajorityOptions {
  std::string set, ties = "ignore";
  std::int64_t min_votes = 1;  ///< larger means more pixels to ignore

  std::vector<Option> Options();
};

/// Label sets compared pixel by pixel.
struct LabelsCompareOptions {
  std::int64_t level = 0;

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

/// A label set, taken out of stores with all its revisions.
struct LabelsDeleteOptions {
  std::string set;
  bool dry_run = false;

  std::vector<Option> Options();
};

/// The result of pruning or deletion for one store: revisions by folder name. One that is current
/// is in neither list of a pruning.
struct PrunedStore {
  std::string store;
  std::vector<std::string> removed;
  std::vector<std::string> kept;  ///< a lock names them
  std::uint64_t bytes = 0;        ///< size of those that are removed

  static constexpr auto Fields() {
    using T = PrunedStore;
    return AsFullObject(Field("store", &T::store), Field("removed", &T::removed),
                        Field("kept", &T::kept), Field("bytes", &T::bytes));
  }
};

}  // namespace patchbay
