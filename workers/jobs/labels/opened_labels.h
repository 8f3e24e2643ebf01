// The current revision of a label set, read back row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/os/folders.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct OpenedLabels {
  LabelledImage image;
  zarr::OpenedLabelSet set;
  plan::ClassTable classes;
};

/// A set of the manifest's one store (`images`).
StatusOr<OpenedLabels> OpenLabels(TaskContext& context, const std::string& set);

/// Rows of one level, one byte per pixel. Belongs to one thread.
class LabelRowReader {
 public:
  /// DataLoss for a label image that is not of its store's image.
  static StatusOr<LabelRowReader> Open(const Folders& allowed, const OpenedLabels& labels,
                                       int level, AfterPiece after_piece);
  /// The rows from `y` on; valid until the next call.
  StatusOr<const std::uint8_t*> Read(std::int64_t y, std::int64_t height);

 private:
  std::unique_ptr<ImageSource> source_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch fetched_;
  int level_ = 0;
  std::int64_t width_ = 0;
  std::vector<std::byte> rows_;
};

}  // namespace patchbay::workers
