#include "workers/access/path_rights.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/outcome.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxComponents = 256;  ///< names in the part of a path that is not there yet

Status Refused(const std::string& path, std::string_view why) {
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "check path", path, why);
}

/// Whether `path` is `folder` or below it; both canonical.
bool IsBelow(const std::string& path, const std::string& folder) {
  if (folder == "/") return true;
  return path.compare(0, folder.size(), folder) == 0 &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

/// The members of `folders` that can be named without links.
std::vector<std::string> Canonical(const std::vector<std::string>& folders) {
  std::vector<std::string> canonical;
  for (const std::string& folder : folders) {
    StatusOr<std::string> path = CanonicalPath(folder);
    if (path.ok()) canonical.push_back(*std::move(path));
  }
  return canonical;
}

std::string ListOf(const std::vector<std::string>& folders) {
  return folders.empty() ? "none" : StrJoin(folders, ", ");
}

}  // namespace

StatusOr<std::string> CanonicalPath(const std::string& path) {
  if (path.empty() || path[0] != '/') return Refused(path, "not an absolute path");
  if (path.find('\0') != std::string::npos) return Refused(path, "holds a NUL byte");
  if (path.size() >= PATH_MAX) return Refused(path, "longer than the system allows");
  std::string existing = path;
  std::string rest;
  char resolved[PATH_MAX];
  for (std::size_t i = 0; i < kMaxComponents; ++i) {
    if (realpath(existing.c_str(), resolved) != nullptr) {
      if (rest.empty()) return std::string(resolved);
      return std::string(resolved) == "/" ? rest : StrCat(resolved, rest);
    }
    if (errno != ENOENT) return FromErrno("check path", path, errno);
    struct stat st {};
    if (lstat(existing.c_str(), &st) == 0) return Refused(path, "a dangling link");
    while (existing.size() > 1 && existing.back() == '/') existing.pop_back();
    const std::size_t slash = existing.rfind('/');
    const std::string name = existing.substr(slash + 1);
    if (name == "..") return Refused(path, "'..' after a folder that does not exist");
    if (!name.empty() && name != ".") rest = StrCat("/", name, rest);
    existing.resize(slash == 0 ? 1 : slash);
  }
  return Refused(path, "too many folders that do not exist");
}

Folders AllowedFoldersOf(const PathRights& rights, const std::string& own) {
  Folders::Roots roots{Canonical(rights.read), Canonical(rights.write)};
  if (!own.empty()) roots.write.push_back(own);
  return Folders(std::move(roots));
}

StatusOr<std::string> PathAllowed(const PathRights& rights, Access access,
                                  const std::string& path) {
  PB_ASSIGN_OR_RETURN(std::string canonical, CanonicalPath(path));
  const std::vector<std::string>& folders = access == Access::kRead ? rights.read : rights.write;
  for (const std::string& folder : folders) {
    const StatusOr<std::string> real_folder = CanonicalPath(folder);
    if (real_folder.ok() && IsBelow(canonical, *real_folder)) return canonical;
  }
  return ErrorAbout(absl::StatusCode::kPermissionDenied, "check path", path,
                    StrCat("outside the folders the key may ",
                           access == Access::kRead ? "read" : "write", " (", ListOf(folders), ")"));
}

}  // namespace patchbay::workers
