// From an annotation file to the pixels of a label image, tile by tile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/format/zarr/label_writer.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/results/label_reports.h"
#include "runtime/os/folders.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/labels/opened_labels.h"
#include "workers/jobs/labels/origin.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The pixels of a set, as WriteLabelShards takes them.
class LabelRaster {
 public:
  virtual ~LabelRaster() = default;
  /// As zarr::LabelChunk.
  virtual StatusOr<std::optional<std::uint8_t>> Chunk(const Point& chunk, std::uint8_t* out) = 0;
  /// Call after all chunks; returns errors that show only then.
  virtual Status Finish() { return absl::OkStatus(); }
  /// The format, outlines by class in the table's order, and facts besides pixels.
  const results::DrawnLabelReport& report() const { return report_; }

 protected:
  results::DrawnLabelReport report_;
};

struct RasterRequest {
  const LabelledImage& image;
  const plan::ClassTable& classes;
  std::string site;
  Origin origin = Origin::kByFormat;
  std::string class_from;  ///< LabelsImportOptions::class_from
  AfterPiece after_piece;  ///< called after each piece of a mask that is read
};

/// Outlines, scaled to the store's finest level and painted in the table's order. `text` is the
/// file's content. InvalidArgument: malformed, a class that the table does not have, drawn at
/// another resolution, nothing on the slide.
StatusOr<std::unique_ptr<LabelRaster>> DrawOutlines(const RasterRequest& request,
                                                    std::string_view text);

/// A TIFF whose values, of its first channel, the table explains. InvalidArgument: another size
/// than the store's level 0 on all of its levels; and, from Finish, values that the table does not
/// have.
StatusOr<std::unique_ptr<LabelRaster>> DrawMask(const Folders& allowed,
                                                const RasterRequest& request,
                                                const std::string& path);

/// A class map, by nearest centre. InvalidArgument, from Finish, as DrawMask.
StatusOr<std::unique_ptr<LabelRaster>> DrawClassMap(const Folders& allowed,
                                                    const RasterRequest& request,
                                                    const OpenedLabels& labels);

}  // namespace patchbay::workers
