#include "runtime/os/file.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/core/counted.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/os/confined_open.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folders.h"
#include "runtime/os/temporary_file.h"
#include "runtime/os/work_meter.h"

namespace patchbay {

void UniqueFd::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

StatusOr<UniqueFd> OpenFile(const Folders& allowed, const std::string& path, int flags,
                            unsigned mode) {
  const bool is_write = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
  PB_ASSIGN_OR_RETURN(const std::string_view folder, allowed.Around(path, is_write));
  if (!folder.empty()) return OpenConfined(std::string(folder), path, flags, mode);
  const int fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return FromErrno("open", path, errno);
  return UniqueFd(fd);
}

Status ReadAt(int fd, std::uint64_t offset, std::span<std::byte> out, std::string_view name) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno("read", name, errno);
    if (n == 0) {
      return ErrorAbout(
          absl::StatusCode::kDataLoss, "read", name,
          StrCat("ends at byte ", offset + done, ", ", out.size() - done, " bytes short"));
    }
    done += static_cast<std::size_t>(n);
  }
  CountBytesRead(done);
  return absl::OkStatus();
}

Status WriteAt(int fd, std::uint64_t offset, std::span<const std::byte> bytes,
               std::string_view name) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno("write", name, errno);
    done += static_cast<std::size_t>(n);
  }
  return absl::OkStatus();
}

StatusOr<std::string> ReadFile(const Folders& allowed, const std::string& path,
                               std::size_t max_bytes) {
  // Non-blocking, so that a pipe without a writer cannot hang the reader.
  PB_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(allowed, path, O_RDONLY | O_NONBLOCK));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return FromErrno("stat", path, errno);
  if (S_ISDIR(st.st_mode)) return FromErrno("read", path, EISDIR);
  if (S_ISFIFO(st.st_mode)) {
    return ErrorAbout(absl::StatusCode::kFailedPrecondition, "read", path, "a pipe, not a file");
  }
  if (static_cast<std::uint64_t>(st.st_size) > max_bytes) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "read", path,
                      StrCat(BytesBeyond(static_cast<std::uint64_t>(st.st_size), max_bytes)));
  }
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  PB_RETURN_IF_ERROR(ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(text)), path));
  return text;
}

Status SyncDirectory(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd fd,
                      OpenFile(allowed, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY));
  if (fsync(fd.get()) != 0) return FromErrno("fsync", path, errno);
  return absl::OkStatus();
}

namespace {

Status WriteAndRename(const Folders& allowed, const std::string& path,
                      std::span<const std::byte> bytes, unsigned mode, bool durably) {
  PB_ASSIGN_OR_RETURN(const TemporaryFile file, CreateBeside(allowed, path, ".tmp", mode));
  const auto write = [&]() -> Status {
    PB_RETURN_IF_ERROR(WriteAt(file.fd.get(), 0, bytes, path));
    if (durably && fsync(file.fd.get()) != 0) return FromErrno("fsync", path, errno);
    PB_RETURN_IF_ERROR(RenameFile(allowed, file.path, path));
    if (!durably) return absl::OkStatus();
    return SyncDirectory(allowed, std::filesystem::path(path).parent_path().string());
  };
  Status status = write();
  if (!status.ok()) RemoveFile(allowed, file.path).IgnoreError();
  return status;
}

}  // namespace

Status WriteFileDurably(const Folders& allowed, const std::string& path,
                        std::span<const std::byte> bytes, unsigned mode) {
  return WriteAndRename(allowed, path, bytes, mode, true);
}

Status ReplaceFile(const Folders& allowed, const std::string& path,
                   std::span<const std::byte> bytes, unsigned mode) {
  return WriteAndRename(allowed, path, bytes, mode, false);
}

Status MakeDirectories(const Folders& allowed, const std::string& path, unsigned mode) {
  std::string partial;
  for (const auto& part : std::filesystem::path(path)) {
    partial = partial.empty() ? part.string() : (std::filesystem::path(partial) / part).string();
    struct stat st {};
    // An existing folder need not be writable; whether it is where it seems is checked at the end.
    if (stat(partial.c_str(), &st) == 0) continue;
    const Status made = MakeDirectory(allowed, partial, mode);
    if (!made.ok() && !absl::IsAlreadyExists(made)) return made;
  }
  auto made = OpenFile(allowed, path, O_PATH | O_DIRECTORY);
  if (made.ok() || !absl::IsNotFound(made.status())) return made.status();
  return FromErrno("mkdir", path, ENOTDIR);
}

StatusOr<std::uint64_t> FreeBytes(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_PATH));
  struct statvfs st {};
  if (fstatvfs(fd.get(), &st) != 0) return FromErrno("statvfs", path, errno);
  return static_cast<std::uint64_t>(st.f_bavail) * st.f_frsize;
}

}  // namespace patchbay
