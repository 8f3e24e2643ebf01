#include "workers/sources/source_extent.h"

#include <algorithm>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr std::uint64_t kMaxValueBytes = 8;

/// Where the values and pieces of a directory end, at most the file's end.
std::uint64_t EndOf(const TiffIndex& index, const TiffDirectory& directory) {
  const std::uint64_t most = index.file_bytes();
  std::uint64_t end = 0;
  const auto add = [&](std::uint64_t offset, std::uint64_t size_bytes) {
    if (offset < most) end = std::max(end, offset + std::min(size_bytes, most - offset));
  };
  for (const TiffEntry& entry : directory.entries) {
    add(entry.offset, std::min(entry.count, most) * kMaxValueBytes);
  }
  const auto pieces = index.ReadPieces(directory);
  if (!pieces.ok()) return end;  // not an image that is read
  for (std::size_t i = 0; i < pieces->offset.size(); ++i) {
    add(pieces->offset[i], pieces->size_bytes[i]);
  }
  return end;
}

}  // namespace

Status CheckFileExtent(std::uint64_t file_bytes, std::uint64_t named_bytes) {
  if (file_bytes <= kMaxUnnamedBytes || (file_bytes - kMaxUnnamedBytes) / 2 <= named_bytes) {
    return absl::OkStatus();
  }
  return InvalidArgument("check size: the file has ", file_bytes, " bytes (",
                         HumanBytes(file_bytes), "), its headers name the first ", named_bytes,
                         " (", HumanBytes(named_bytes), "): was it cut, extended or copied badly?");
}

Status CheckTiffExtent(const TiffIndex& index) {
  if (index.file_bytes() <= kMaxUnnamedBytes) return absl::OkStatus();
  std::uint64_t end = 0;
  for (const TiffDirectory& directory : index.directories()) {
    end = std::max(end, EndOf(index, directory));
    if (CheckFileExtent(index.file_bytes(), end).ok()) return absl::OkStatus();
    const auto children = index.ReadSubDirectories(directory);
    if (!children.ok()) continue;
    for (const TiffDirectory& child : *children) end = std::max(end, EndOf(index, child));
  }
  return CheckFileExtent(index.file_bytes(), end);
}

}  // namespace patchbay::workers
