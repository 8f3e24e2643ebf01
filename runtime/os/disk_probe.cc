#include "runtime/os/disk_probe.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/direct_file.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"

namespace patchbay {
namespace {

/// Bytes of one read or write. Larger means less time between them, and more memory.
constexpr std::size_t kProbePieceBytes = std::size_t{4} << 20;
/// The most that is written, or read. Larger means steadier figures and more seconds.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
/// No piece begins later: a slow disk is measured by fewer bytes.
constexpr std::int64_t kMostNs = 500'000'000;

/// A piece of random bytes: some disks and file systems compress.
StatusOr<AlignedBuffer> RandomPiece() {
  AlignedBuffer buffer(
      static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, kProbePieceBytes)));
  if (buffer == nullptr) return ResourceExhausted("probe disk: out of memory");
  std::uint64_t state = RandomU64() | 1;
  for (std::size_t at = 0; at < kProbePieceBytes; at += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(buffer.get() + at, &state, sizeof(state));
  }
  return buffer;
}

StatusOr<UniqueFd> OpenNameless(const Folders& allowed, const std::string& folder) {
  auto nameless = OpenFile(allowed, folder, O_RDWR | O_TMPFILE, 0600);
  if (nameless.ok()) return nameless;
  const std::string path = StrCat(folder, "/.patchbay-probe-", Hex64(RandomU64()));
  PB_ASSIGN_OR_RETURN(UniqueFd named, OpenFile(allowed, path, O_RDWR | O_CREAT | O_EXCL, 0600));
  PB_RETURN_IF_ERROR(RemoveFile(allowed, path));
  return named;
}

/// Past the page cache from now on, where the file system can; else pages are dropped.
void ReadFromDisk(int fd) {
  if (fcntl(fd, F_SETFL, O_DIRECT) != 0) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

/// pread or pwrite of a piece at `at`; through the page cache where the file system refuses it
/// directly. Fewer bytes at the end of a file.
template <typename Call>
StatusOr<std::size_t> Piece(int fd, std::uint64_t at, Call call, const std::string& name) {
  for (;;) {
    const ssize_t n = call(static_cast<off_t>(at));
    if (n >= 0) return static_cast<std::size_t>(n);
    const int flags = fcntl(fd, F_GETFL);
    if (errno == EINTR) continue;
    if (errno != EINVAL || (flags & O_DIRECT) == 0) return FromErrno("probe disk", name, errno);
    fcntl(fd, F_SETFL, flags & ~O_DIRECT);
  }
}

/// Calls `call(at)` for piece after piece up to `most` bytes, and `end` last: bytes a second. A
/// piece with less than the one before is the last.
template <typename Call, typename End>
StatusOr<double> RateOf(std::uint64_t most, const AfterProbePiece& after_piece, Call call,
                        End end) {
  const std::int64_t begun = SteadyNowNs();
  std::uint64_t done = 0;
  for (std::size_t before = 0; done < most && SteadyNowNs() - begun < kMostNs;) {
    PB_ASSIGN_OR_RETURN(const std::size_t bytes, call(done));
    PB_RETURN_IF_ERROR(after_piece());
    done += bytes;
    if (bytes == 0 || bytes < before) break;
    before = bytes;
  }
  PB_RETURN_IF_ERROR(end());
  const std::int64_t ns = std::max<std::int64_t>(1, SteadyNowNs() - begun);
  return static_cast<double>(done) * 1e9 / static_cast<double>(ns);
}

StatusOr<double> ReadRate(int fd, std::byte* buffer, const std::string& name,
                          const AfterProbePiece& after_piece) {
  ReadFromDisk(fd);
  const auto read = [&](std::uint64_t at) {
    return Piece(
        fd, at, [&](off_t from) { return pread(fd, buffer, kProbePieceBytes, from); }, name);
  };
  return RateOf(kMostBytes, after_piece, read, [] { return absl::OkStatus(); });
}

}  // namespace

StatusOr<DiskRates> ProbeFolder(const Folders& allowed, const std::string& folder,
                                const AfterProbePiece& after_piece) {
  PB_ASSIGN_OR_RETURN(const AlignedBuffer buffer, RandomPiece());
  PB_ASSIGN_OR_RETURN(const std::uint64_t free, FreeBytes(allowed, folder));
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenNameless(allowed, folder));
  ReadFromDisk(fd.get());
  const std::uint64_t most = std::min(kMostBytes, free / 10);
  const std::size_t piece =
      std::min<std::uint64_t>(kProbePieceBytes, most / kDirectAlignment * kDirectAlignment);
  const auto write = [&](std::uint64_t at) {
    return Piece(
        fd.get(), at, [&](off_t to) { return pwrite(fd.get(), buffer.get(), piece, to); }, folder);
  };
  const auto sync = [&]() -> Status {
    if (fsync(fd.get()) != 0) return FromErrno("probe disk", folder, errno);
    return after_piece();
  };
  DiskRates rates;
  PB_ASSIGN_OR_RETURN(rates.write_bytes_per_s, RateOf(most, after_piece, write, sync));
  PB_ASSIGN_OR_RETURN(rates.read_bytes_per_s,
                      ReadRate(fd.get(), buffer.get(), folder, after_piece));
  return rates;
}

StatusOr<double> ProbeFile(const Folders& allowed, const std::string& path,
                           const AfterProbePiece& after_piece) {
  PB_ASSIGN_OR_RETURN(const AlignedBuffer buffer, RandomPiece());
  PB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(allowed, path, O_RDONLY));
  return ReadRate(fd.get(), buffer.get(), path, after_piece);
}

}  // namespace patchbay
