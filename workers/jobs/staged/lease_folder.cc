#include "workers/jobs/staged/lease_folder.h"

#include <filesystem>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/direct_file.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"

namespace patchbay::workers {

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
                        std::span<const std::byte> bytes, unsigned mode) const {
  const std::string written = File("file");
  PB_RETURN_IF_ERROR(CreateFileDirectly(allowed_, written, bytes, mode));
  PB_RETURN_IF_ERROR(
      MakeDirectories(allowed_, std::filesystem::path(target).parent_path().string()));
  PB_RETURN_IF_ERROR(context.CheckCancelled());
  return RenameFile(allowed_, written, target);
}

}  // namespace patchbay::workers
