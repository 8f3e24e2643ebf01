// An image of a dataset or a table's row, opened for a plan or a lock.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/core/hash.h"
#include "workers/jobs/plan/table_rows.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct OpenedImage {
  ImageLayout layout;
  Digest digest;
  std::string stamp;  ///< taken before it was opened and hashed
  std::string path;   ///< of another image than what is listed
};

/// Image `number` of the list. Of a table's row, null without one, a slide is looked at for the
/// content that its row says it has; where the row does not say, the store of what it has takes its
/// place.
StatusOr<OpenedImage> OpenForPlan(TaskContext& context, const ImageList& list,
                                  const plan::PlannedRow* row, const std::string& listed,
                                  std::size_t number);

}  // namespace patchbay::workers
