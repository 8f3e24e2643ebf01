#include "runtime/os/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/os/file.h"

namespace patchbay {
namespace {

constexpr std::size_t kBootIdLength = 36;

}  // namespace

StatusOr<std::string> HostIdentity() {
  // Files of /proc have no size, so they are read as far as they go.
  PB_ASSIGN_OR_RETURN(UniqueFd fd,
                      OpenFile(Folders::OfThisProcess(), "/proc/sys/kernel/random/boot_id", 0));
  std::string boot_id(kBootIdLength, '\0');
  if (read(fd.get(), boot_id.data(), kBootIdLength) != static_cast<ssize_t>(kBootIdLength)) {
    return FailedPrecondition("find host identity: the boot id cannot be read");
  }
  struct stat pid_space {
  }, network{};
  if (stat("/proc/self/ns/pid", &pid_space) != 0 || stat("/proc/self/ns/net", &network) != 0) {
    return FailedPrecondition("find host identity: the namespaces cannot be read");
  }
  return StrCat(boot_id, "-", pid_space.st_ino, "-", network.st_ino, kHostUserMark, geteuid());
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

}  // namespace patchbay
