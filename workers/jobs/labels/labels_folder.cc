#include "workers/jobs/labels/labels_folder.h"

#include <chrono>

#include <fcntl.h>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/os/file_lock.h"
#include "runtime/os/file_names.h"
#include "workers/jobs/task/folder_tree.h"

namespace patchbay::workers {
namespace {

/// For the task before this one in the same store.
constexpr std::chrono::milliseconds kLockLimit{120'000};

}  // namespace

StatusOr<LabelsFolder> LabelsFolder::Open(TaskContext& context, const std::string& store) {
  LabelsFolder out(context.allowed);
  out.path_ = StrCat(store, "/", zarr::kLabelsFolder);
  PB_RETURN_IF_ERROR(MakeDirectories(context.allowed, out.path_));
  PB_ASSIGN_OR_RETURN(out.fd_, OpenFile(context.allowed, out.path_, O_RDONLY | O_DIRECTORY));
  PB_RETURN_IF_ERROR(LockFile(out.fd_.get(), kLockLimit, [&context] {
    context.AddProgress();
    return context.CheckCancelled();
  }));
  PB_RETURN_IF_ERROR(RemoveTree(context, StrCat(out.path_, "/", zarr::kLabelStagingFolder)));
  return out;
}

LabelsFolder::~LabelsFolder() {
  if (!fd_.valid()) return;
  Clear().IgnoreError();
  RemoveFile(allowed_, path_).IgnoreError();  // only where nothing was imported
}

std::string LabelsFolder::Staging() const {
  return StrCat(path_, "/", zarr::kLabelStagingFolder, "/set");
}

std::string LabelsFolder::Of(const std::string& revision) const {
  return StrCat(path_, "/", revision);
}

Status LabelsFolder::Clear() const {
  return patchbay::RemoveTree(allowed_, StrCat(path_, "/", zarr::kLabelStagingFolder));
}

}  // namespace patchbay::workers
