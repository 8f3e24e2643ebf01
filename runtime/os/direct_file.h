// Writes large files without the page cache: the kernel neither copies their bytes nor keeps pages
// that are not read soon, and fsync waits only for the last block.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/status.h"
#include "runtime/os/folders.h"

namespace patchbay {

/// Alignment of direct reads and writes, in memory and in the file: a page, which no disk in use
/// exceeds.
inline constexpr std::size_t kDirectAlignment = 4096;

struct FreeAligned {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
/// Memory from std::aligned_alloc.
using AlignedBuffer = std::unique_ptr<std::byte, FreeAligned>;

/// Whether a file's pages are wanted: of one that is read next they save the disk that reading.
enum class Pages : bool { kNone, kKept };

/// A new file whose content is durable; its name is not, until its folder is synced. Where the file
/// system has no direct I/O, the file is small, or its pages are wanted, through the page cache.
/// AlreadyExists when there is something at `path`; after another error a part of the file may be
/// there.
Status CreateFileDirectly(const Folders& allowed, const std::string& path,
                          std::span<const std::byte> bytes, unsigned mode = 0644,
                          Pages pages = Pages::kNone);

}  // namespace patchbay
