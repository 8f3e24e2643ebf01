#include "runtime/os/confined_open.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"

namespace patchbay {
namespace {

/// The kernel returns EAGAIN when a component of the path was renamed meanwhile.
constexpr int kMostTries = 128;

/// A descriptor, or the negated errno.
using Opened = int;

Opened OpenBeneath(int folder, const char* name, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags));
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int i = 0; i < kMostTries; ++i) {
    const long fd = syscall(SYS_openat2, folder, name, &how, sizeof(how));
    if (fd >= 0) return static_cast<int>(fd);
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return -errno;
}

/// Whether openat2 answers here: false on older kernels, and below filters that do not know it.
bool Answers() {
  const UniqueFd fd(OpenBeneath(AT_FDCWD, ".", O_PATH | O_CLOEXEC, 0));
  return fd.valid();
}

bool IsLink(int folder, const std::string& name) {
  char target[1];
  return readlinkat(folder, name.c_str(), target, sizeof(target)) >= 0;
}

/// O_DIRECTORY on a link gives ENOTDIR, which would look like a missing name.
Opened OpenComponent(int folder, const std::string& name, int flags, unsigned mode) {
  if (name == "..") return -EXDEV;
  const int fd = openat(folder, name.c_str(), flags | O_NOFOLLOW, mode);
  if (fd >= 0) return fd;
  const int error = errno;
  return error == ENOTDIR && IsLink(folder, name) ? -ELOOP : -error;
}

/// Component by component, without any link.
Opened OpenBelow(int folder, std::string_view below, int flags, unsigned mode) {
  UniqueFd at(dup(folder));
  while (true) {
    const std::size_t slash = below.find('/');
    const std::string name(below.substr(0, slash));
    below.remove_prefix(slash == std::string_view::npos ? below.size() : slash + 1);
    while (below.starts_with('/')) below.remove_prefix(1);
    if (below.empty()) return OpenComponent(at.get(), name, flags, mode);
    const Opened next = OpenComponent(at.get(), name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (next < 0) return next;
    at = UniqueFd(next);
  }
}

/// The answer is looked for once, when a refusal may mean that the kernel has no such call.
bool KernelConfines(Opened refused) {
  static std::atomic<bool> is_missing{false};
  if (is_missing.load(std::memory_order_relaxed)) return false;
  if ((refused == -ENOSYS || refused == -EPERM) && !Answers()) is_missing.store(true);
  return !is_missing.load(std::memory_order_relaxed);
}

/// The name of `path` in `folder`; "." for the folder itself.
std::string Below(const std::string& folder, const std::string& path) {
  std::string_view name = std::string_view(path).substr(std::min(folder.size(), path.size()));
  while (name.starts_with('/')) name.remove_prefix(1);
  return name.empty() ? "." : std::string(name);
}

Status Refusal(int error, const std::string& folder, const std::string& path) {
  if (error != EXDEV && error != ELOOP) return FromErrno("open", path, error);
  return ErrorAbout(absl::StatusCode::kPermissionDenied, "open", path,
                    StrCat("a link leads out of ", folder, ", the folder that may be used"));
}

}  // namespace

StatusOr<UniqueFd> OpenConfined(const std::string& folder, const std::string& path, int flags,
                                unsigned mode) {
  const UniqueFd root(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid() && errno == ENOTDIR) {  // a key may name a single file
    const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return FromErrno("open", path, errno);
    return UniqueFd(fd);
  }
  if (!root.valid()) return FromErrno("open", folder, errno);
  const std::string name = Below(folder, path);
  Opened opened = -ENOSYS;
  if (KernelConfines(0)) opened = OpenBeneath(root.get(), name.c_str(), flags | O_CLOEXEC, mode);
  if (opened < 0 && !KernelConfines(opened)) {
    opened = OpenBelow(root.get(), name, flags | O_CLOEXEC, mode);
  }
  if (opened < 0) return Refusal(-opened, folder, path);
  return UniqueFd(opened);
}

}  // namespace patchbay
