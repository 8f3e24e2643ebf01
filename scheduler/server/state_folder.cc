#include "scheduler/server/state_folder.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "runtime/wire/control/keys.h"

namespace patchbay::scheduler {

StatusOr<UniqueFd> TakeStateFolder(const std::string& folder) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisProcess(), folder, 0700));
  PB_RETURN_IF_ERROR(control::CheckLocalFolder(folder));
  PB_RETURN_IF_ERROR(control::CheckPrivateFolder(folder));
  const std::string path = StrCat(folder, "/lock");
  PB_ASSIGN_OR_RETURN(UniqueFd lock,
                      OpenFile(Folders::OfThisProcess(), path, O_RDWR | O_CREAT, 0600));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return absl::FailedPreconditionError(
          StrCat("take state folder: ", folder, ": another scheduler uses it"));
    }
    return FromErrno("lock", path, errno);
  }
  return lock;
}

}  // namespace patchbay::scheduler
