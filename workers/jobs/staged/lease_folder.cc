#include "workers/jobs/staged/lease_folder.h"

#include <filesystem>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::workers {
namespace {

std::string ParentOf(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

/// StepOf for a context that is only looked at.
Status Step(const TaskContext& context) {
  context.signals->progress.fetch_add(1, std::memory_order_relaxed);
  return context.CheckCancelled();
}

/// A folder below `top`, which is not made again once it is gone. From below, as most are there.
Status MakeFoldersBelow(const TaskContext& context, const std::string& top,
                        const std::string& folder) {
  PB_RETURN_IF_ERROR(Step(context));
  if (folder.size() <= top.size() || Exists(context.allowed, folder)) return absl::OkStatus();
  PB_RETURN_IF_ERROR(MakeFoldersBelow(context, top, ParentOf(folder)));
  const Status made = MakeDirectory(context.allowed, folder);
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

}  // namespace

StatusOr<std::unique_ptr<LeaseFolder>> LeaseFolder::Make(const TaskContext& context,
                                                         const std::string& staging) {
  std::unique_ptr<LeaseFolder> folder(
      new LeaseFolder(context.allowed, StrCat(staging, "/", context.lease.incarnation, "-",
                                              context.lease.counter, "-", Hex64(RandomU64()))));
  PB_RETURN_IF_ERROR(MakeDirectory(context.allowed, folder->path_, 0700));
  return folder;
}

LeaseFolder::~LeaseFolder() { RemoveTree(allowed_, path_).IgnoreError(); }

Status LeaseFolder::Put(const TaskContext& context, const std::string& target,
                        std::span<const std::byte> bytes, unsigned mode, Pages pages) const {
  const std::string written = File(StrCat("file-", files_.fetch_add(1)));
  PB_RETURN_IF_ERROR(CreateFileDirectly(allowed_, written, bytes, mode, pages));
  PB_RETURN_IF_ERROR(MakeFoldersBelow(context, ParentOf(path_), ParentOf(target)));
  PB_RETURN_IF_ERROR(Step(context));
  return RenameFile(allowed_, written, target);
}

}  // namespace patchbay::workers
