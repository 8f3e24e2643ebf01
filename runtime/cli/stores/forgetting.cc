#include "runtime/cli/stores/forgetting.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/os/file.h"
#include "runtime/os/file_lock.h"
#include "runtime/os/file_names.h"
#include "runtime/os/pid_stamp.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxOwnerBytes = 4096;
constexpr std::chrono::seconds kLockLimit{10};  ///< for a job that adds rows to a table

/// Keeps jobs from writing tables of the folder, as those keep each other from it.
StatusOr<UniqueFd> LockFolder(const Folders& allowed, const std::string& folder) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(allowed, folder, O_RDONLY | O_DIRECTORY));
  const Status locked = LockFile(fd.get(), kLockLimit);
  if (!absl::IsUnavailable(locked)) return fd;
  return ErrorAbout(absl::StatusCode::kUnavailable, "forget", folder,
                    "a job writes its tables: run the command again");
}

/// A file's new content, with its permissions.
Status Rewrite(const ForgettingRights& rights, const std::string& path, const std::string& text) {
  PB_ASSIGN_OR_RETURN(const struct stat st, StatOf(rights.allowed, path, false));
  if (!S_ISREG(st.st_mode)) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "forget", path, "not a file");
  }
  PB_RETURN_IF_ERROR(WriteFileDurably(rights.allowed, path, AsBytes(text), st.st_mode & 0777));
  return ShareFiles(rights.allowed, path, (st.st_mode & 077) != 0 ? rights.sharing : std::nullopt);
}

/// The lines of `text` from `from` to before `to`, counted from 1.
std::string_view LinesBetween(std::string_view text, int from, int to) {
  std::size_t begin = 0;
  for (int line = 1; line < from && begin < text.size(); ++line) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  std::size_t end = begin;
  for (int line = from; line < to && end < text.size(); ++line) {
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  }
  return text.substr(begin, end - begin);
}

Status DropRows(const ForgettingRights& rights, const TraceFinder& finder, const std::string& path,
                const TraceKeys& keys) {
  if (!Exists(rights.allowed, path, false)) return absl::OkStatus();  // it went as a whole
  PB_ASSIGN_OR_RETURN(const UniqueFd lock, LockFolder(rights.allowed, FolderOf(path)));
  PB_ASSIGN_OR_RETURN(const std::string text,
                      ReadFile(rights.allowed, path, plan::kMaxCohortBytes));
  std::string kept;
  int next = 1;
  std::string_view rest = text;
  for (const KeyedRow& row : finder.RowsOf(path, text)) {
    if (!IsTied(row.keys, keys)) continue;
    const std::string_view before = LinesBetween(rest, 1, row.line - next + 1);
    kept += before;
    rest.remove_prefix(before.size());
    rest.remove_prefix(LinesBetween(rest, 1, row.end - row.line + 1).size());
    next = row.end;
  }
  kept += rest;
  return kept.size() == text.size() ? absl::OkStatus() : Rewrite(rights, path, kept);
}

/// Out of every reader's sight in one step; the bytes of a folder go at the end.
Status PutAside(const Folders& allowed, const std::string& path, std::set<std::string>& aside) {
  if (!IsFolder(allowed, path, false)) return RemoveFile(allowed, path);
  if (path.ends_with(StrCat("/", kForgottenFolder))) {
    aside.insert(path);
    return absl::OkStatus();
  }
  const std::string folder = StrCat(FolderOf(path), "/", kForgottenFolder);
  PB_RETURN_IF_ERROR(MakeDirectories(allowed, folder, 0700));
  aside.insert(folder);
  const Status renamed = RenameFile(allowed, path, StrCat(folder, "/", Hex64(RandomU64())));
  if (absl::IsNotFound(renamed)) return absl::OkStatus();
  PB_RETURN_IF_ERROR(renamed);
  return SyncDirectory(allowed, FolderOf(path));
}

}  // namespace

std::optional<std::pair<std::string, std::string>> UsedAmong(
    const std::vector<std::string>& paths) {
  const std::string self = std::to_string(getpid());
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string pid = it->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos || pid == self) continue;
    std::error_code unseen;
    for (fs::directory_iterator fd(it->path() / "fd", unseen); !unseen && fd != end;
         fd.increment(unseen)) {
      std::error_code gone;
      const std::string open = fs::read_symlink(fd->path(), gone).string();
      const auto used = std::find_if(paths.begin(), paths.end(), [&](const std::string& path) {
        return open == path || open.starts_with(path + "/");
      });
      if (used == paths.end()) continue;
      std::string name;
      std::getline(std::ifstream(it->path() / "comm"), name);
      return std::pair(*used, StrCat("process ", pid, " (", name, ")"));
    }
  }
  return std::nullopt;
}

bool HasLivingOwner(const Folders& allowed, const std::string& job) {
  const auto owners = ListFolder(allowed, job + "/owners");
  for (const std::string& owner : owners.ok() ? *owners : std::vector<std::string>()) {
    const auto text = ReadFile(allowed, StrCat(job, "/owners/", owner), kMaxOwnerBytes);
    const auto json = text.ok() ? ParseJson(*text, "owner") : text.status();
    const auto command = json.ok() ? FromJson<PidStamp>(*json, "process") : json.status();
    if (command.ok() && !HasEnded(*command)) return true;
  }
  return false;
}

Status RemoveTraces(const ForgettingRights& rights, const TraceFinder& finder,
                    const std::vector<std::size_t>& tied, const TraceKeys& keys) {
  std::map<TraceKind, std::set<std::string>> by_kind;
  for (const std::size_t i : tied) by_kind[finder.traces[i].kind].insert(finder.traces[i].path);
  std::set<std::string> aside;
  for (const auto& [kind, paths] : by_kind) {
    for (const std::string& path : paths) {
      if (kind == TraceKind::kLock) continue;
      if (kind == TraceKind::kResult || kind == TraceKind::kStore) {
        PB_RETURN_IF_ERROR(PutAside(rights.allowed, path, aside));
      } else {
        PB_RETURN_IF_ERROR(DropRows(rights, finder, path, keys));
      }
    }
    if (kind != TraceKind::kResult && kind != TraceKind::kStore) continue;
    // Before the rows that would find them again.
    for (const std::string& folder : aside) PB_RETURN_IF_ERROR(RemoveTree(rights.allowed, folder));
    aside.clear();
  }
  return absl::OkStatus();
}

}  // namespace patchbay::cli
