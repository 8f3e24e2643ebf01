#include "runtime/os/direct_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/os/file.h"

namespace patchbay {
namespace {

/// Bytes of one write. Larger means fewer of them and more memory.
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
/// Smaller files are written faster through the page cache.
constexpr std::size_t kSmallBytes = std::size_t{1} << 20;

/// False when the file system refuses direct writes, or these.
StatusOr<bool> WritePiece(int fd, std::size_t offset, std::span<const std::byte> piece,
                          const std::string& path) {
  ssize_t n = 0;
  do {
    n = pwrite(fd, piece.data(), piece.size(), static_cast<off_t>(offset));
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EINVAL) return false;
  if (n < 0) return FromErrno("write", path, errno);
  return static_cast<std::size_t>(n) == piece.size();  // else a full disk, which WriteAt will name
}

/// Writes as many whole blocks as can be written directly; returns their bytes.
StatusOr<std::size_t> WriteBlocks(int fd, std::span<const std::byte> bytes,
                                  const std::string& path) {
  const AlignedBuffer buffer(
      static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, kPieceBytes)));
  if (buffer == nullptr) return std::size_t{0};
  std::size_t done = 0;
  while (bytes.size() - done >= kDirectAlignment) {
    const std::size_t size =
        std::min(kPieceBytes, (bytes.size() - done) / kDirectAlignment * kDirectAlignment);
    std::memcpy(buffer.get(), bytes.data() + done, size);
    PB_ASSIGN_OR_RETURN(const bool is_written,
                        WritePiece(fd, done, std::span(buffer.get(), size), path));
    if (!is_written) break;
    done += size;
  }
  return done;
}

Status BackToPageCache(int fd, const std::string& path) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_DIRECT) != 0) {
    return FromErrno("write", path, errno);
  }
  return absl::OkStatus();
}

}  // namespace

Status CreateFileDirectly(const Folders& allowed, const std::string& path,
                          std::span<const std::byte> bytes, unsigned mode, Pages pages) {
  PB_ASSIGN_OR_RETURN(const UniqueFd fd,
                      OpenFile(allowed, path, O_WRONLY | O_CREAT | O_EXCL, mode));
  std::size_t done = 0;
  // Set after opening: an open that the file system refuses may have made the file.
  const bool is_direct = pages == Pages::kNone && bytes.size() >= kSmallBytes;
  if (is_direct && fcntl(fd.get(), F_SETFL, O_DIRECT) == 0) {
    PB_ASSIGN_OR_RETURN(done, WriteBlocks(fd.get(), bytes, path));
    PB_RETURN_IF_ERROR(BackToPageCache(fd.get(), path));
  }
  PB_RETURN_IF_ERROR(WriteAt(fd.get(), done, bytes.subspan(done), path));
  if (fsync(fd.get()) != 0) return FromErrno("fsync", path, errno);
  return absl::OkStatus();
}

}  // namespace patchbay
