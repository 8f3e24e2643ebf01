// The images of a dataset in their order. A row of a table is one image: the store made from the
// row's content if there is one, else the image at the row's path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/source/file_kind.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Stores by the first plan::kContentDigits digits of their source's SHA-256.
using StoresByContent = std::map<std::string, std::string>;

/// The result of the root task.
struct ImageList {
  std::string root = {};                 ///< plan::SharedFolder
  std::vector<std::string> images = {};  ///< below it
  bool has_stores = false;               ///< the config names a folder of stores
  /// For rows whose content is not known before they are read; else empty.
  StoresByContent stores = {};
  FilesByKind skipped_files = {};  ///< in folders, by kind

  static ImageList Of(const std::vector<std::string>& paths);
  std::vector<std::string> Paths() const;
  static constexpr auto Fields() {
    return AsObject(
        Field("root", &ImageList::root).Required(), Field("images", &ImageList::images).Required(),
        Field("has_stores", &ImageList::has_stores), Field("stores", &ImageList::stores),
        Field("skipped_files", &ImageList::skipped_files));
  }
};

/// Whether a job's dataset is a table.
bool IsTable(const Json& manifest);

/// Rows `first` to `first` + `count` of a job's table, nothing without one; InvalidArgument unless
/// it has `images` rows.
StatusOr<std::vector<plan::PlannedRow>> RowsOf(const Json& manifest, std::size_t images,
                                               std::size_t first, std::size_t count);

/// The images of a job's table or folders, with the facts that their tasks need. PermissionDenied
/// and NotFound for the folder of stores; InvalidArgument when a row's content has two stores.
/// Images are not opened: a path that is no image fails later, when it is opened.
StatusOr<ImageList> ListImages(TaskContext& context);

}  // namespace patchbay::workers
