// A stream job as a user submits it: the keys of its payload in addition to those of the config,
// and its manifest with the rows of the user's table. Columns that no worker needs are not sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/hash.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/model/plan/plan_fields.h"
#include "runtime/model/source/slide_choice.h"
#include "runtime/model/stream/limits.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/stream_forms.h"

namespace patchbay::plan {

/// Digits of a SHA-256 that tell contents apart: 128 bits, as manifests are short.
inline constexpr std::size_t kContentDigits = 32;

/// The keys of a stream's payload in addition to those of its config.
struct StreamStart {
  std::uint32_t world_size = 1;
  Position start = {};  ///< position where every rank of the job begins
  /// The cluster's; it decides where the config does not.
  Numerics cluster_numerics = Numerics::kCpu;

  static constexpr auto Fields() {
    return AsObject(Field("world_size", &StreamStart::world_size).Within(1, kMaxWorldSize),
                    Field("start", &StreamStart::start),
                    Field("cluster_numerics", &StreamStart::cluster_numerics));
  }
};

/// The digests that the run's lock has of an image.
struct RowPins {
  Digest image = {};
  /// Label set -> revision; without sets that the image lacks.
  std::map<std::string, Digest> sets = {};

  bool operator==(const RowPins&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("image", &RowPins::image).Required(), Field("sets", &RowPins::sets));
  }
};

/// One row of a table of images.
struct PlannedRow {
  std::string path = {};           ///< below the folder that all images share
  std::string content = {};        ///< kContentDigits of its SHA-256; "" where it is not known
  std::optional<double> mpp = {};  ///< um/px from the table's column, where it has one
  std::string modality = {};       ///< from the table's column; "" where it has none
  SlideChoice choice = {};         ///< from the table's columns, of a DICOM slide
  /// Where patches begin, in pixels of level 0, where a table lists them.
  std::vector<PlanePoint> positions = {};
  PlaceLabels position_labels = {};  ///< their classes: labels.label.positions_column
  /// By column of sampling.weight_by: PlannedImage::groups.
  std::vector<std::uint32_t> groups = {};
  std::optional<std::int64_t> label = {};  ///< value of the column labels.label.column
  std::uint32_t scanner = 0;               ///< PlannedImage::stain_reference
  std::optional<RowPins> pins = {};        ///< where the run is locked
  bool trains = true;                      ///< a lock's statistics are summed over the image

  bool operator==(const PlannedRow&) const = default;
  static constexpr auto Fields() {
    return AsObject(Field("path", &PlannedRow::path).Required(),
                    Field("content", &PlannedRow::content),
                    Field("mpp", &PlannedRow::mpp).Within(kPositive, kLargest),
                    Field("modality", &PlannedRow::modality), Field("choice", &PlannedRow::choice),
                    Field("positions", &PlannedRow::positions),
                    Field("position_labels", &PlannedRow::position_labels),
                    Field("groups", &PlannedRow::groups), Field("label", &PlannedRow::label),
                    Field("scanner", &PlannedRow::scanner), Field("pins", &PlannedRow::pins),
                    Field("trains", &PlannedRow::trains));
  }
};

/// The rows that a run takes of its table.
struct PlannedTable {
  std::string stores = {};  ///< folder in which the stores of contents lie; "" without one
  std::vector<PlannedRow> rows = {};
  /// Order of the positions, by number of the row, where an epoch follows it.
  std::vector<ListedRun> positions_order = {};

  static constexpr auto Fields() {
    return AsObject(Field("stores", &PlannedTable::stores),
                    Field("rows", &PlannedTable::rows).Required(),
                    Field("positions_order", &PlannedTable::positions_order));
  }
};

/// The manifest. Paths are for the eyes of workers alone.
struct StreamManifest {
  std::vector<std::string> images = {};    ///< entries of the dataset; of a table the rows' folder
  std::optional<PlannedTable> table = {};  ///< also of a run that is locked
  /// Absolute paths of reference pictures, by scanner ("" without any).
  std::map<std::string, std::string> stain_references = {};
  std::vector<std::string> functions = {};  ///< absolute paths of the files of own functions

  static constexpr auto Fields() {
    return AsObject(Field("images", &StreamManifest::images).Required(),
                    Field("table", &StreamManifest::table),
                    Field("stain_references", &StreamManifest::stain_references),
                    Field("functions", &StreamManifest::functions));
  }
};

}  // namespace patchbay::plan
