// Finds the images of the paths that a user names as a dataset.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/source/file_kind.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/folder_walk.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxDatasetImages = 100'000;

struct FindImagesOptions {
  bool stores = true;  ///< false: slides only; stores in folders are skipped
  std::size_t most = kMaxDatasetImages;
  bool masks = true;  ///< false: TIFFs in folders that are masks (MaskReason) are skipped
  /// True: unreadable entries of a folder (a locked folder, a link out of the key's folders or in a
  /// circle) and slides of formats that are not read are returned as images under their own names.
  /// Each then fails alone, at MayRead or when opened, with its reason; only for callers that call
  /// MayRead on every path. False: an unreadable entry is an error.
  bool keep_unreadable = false;
  /// Counts the files in folders that are skipped for their names, if not null. Where stores
  /// are wanted, the tables that jobs write beside them are not counted.
  FilesByKind* skipped_files = nullptr;
};

/// Stores and slide files are taken as they are named; other folders are searched, nested ones too,
/// for stores and for files with a slide's extension (names that begin with a dot are skipped).
/// Canonical paths, each once, in the order named and by relative path within a folder: the order
/// does not depend on where the dataset lies. A DICOM slide is one image by whatever name: the
/// first of its levels' files in their folder; a label or overview is skipped. A link in a folder
/// is the image it leads to, and skipped beside that image. A folder that links lead to twice, or
/// into itself, is searched once. NotFound for what does not exist and for a folder without images,
/// with what was passed over in it; PermissionDenied outside the key's folders; InvalidArgument for
/// more than `most` and for a store that is named where only slides are wanted.
StatusOr<std::vector<std::string>> FindImages(TaskContext& context,
                                              const std::vector<std::string>& named,
                                              const FindImagesOptions& options = {});

}  // namespace patchbay::workers
