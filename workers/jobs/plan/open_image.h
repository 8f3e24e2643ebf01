// An image of a dataset or a table's row, opened for a plan or a lock.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/core/hash.h"
#include "runtime/model/source/slide_choice.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct OpenedImage {
  ImageLayout layout;
  Digest digest;
  std::string stamp;        ///< taken before it was opened and hashed
  std::string path;         ///< set if it differs from the listed path
  SlideChoice choice = {};  ///< the part of a DICOM slide that was opened
  Json own;                 ///< zarr::OwnAttributes; an empty object for a slide
};

/// Opens image `number` of the list. `row` is its row in the table, or null. A slide is checked
/// against the row's content_hash; without one, the store made from the slide's content replaces
/// it. InvalidArgument for a store that was made of another part of the slide than the row chooses.
StatusOr<OpenedImage> OpenForPlan(TaskContext& context, const ImageList& list,
                                  const plan::PlannedRow* row, const std::string& listed,
                                  std::size_t number);

}  // namespace patchbay::workers
