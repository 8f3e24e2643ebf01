// The identity of a file's content, told without reading it.
#pragma once

#include <cstdint>

#include <sys/stat.h>

namespace patchbay {

/// Numbers and times that the file system keeps of a file. Compared for equality alone: its clock
/// may be another than this machine's. Between nodes device, inode and ctime differ for one file.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size_bytes = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;

  bool operator==(const FileIdentity&) const = default;
  /// Whether size and mtime are equal, so that nothing indicates a write in between.
  bool LooksUnwritten(const FileIdentity& other) const {
    return size_bytes == other.size_bytes && mtime_ns == other.mtime_ns;
  }
};

inline FileIdentity IdentityOf(const struct stat& st) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return {.device = st.st_dev,
          .inode = st.st_ino,
          .size_bytes = static_cast<std::uint64_t>(st.st_size),
          .mtime_ns = st.st_mtim.tv_sec * kNsPerSecond + st.st_mtim.tv_nsec,
          .ctime_ns = st.st_ctim.tv_sec * kNsPerSecond + st.st_ctim.tv_nsec};
}

}  // namespace patchbay
