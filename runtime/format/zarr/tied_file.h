// A file of a store that follows from its pixels and enters no digest. It begins with a checksum
// over the store's pixel digest and its content: a damaged file, and that of other pixels, is
// known.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"

namespace patchbay::zarr {

/// The colours of the finest level (ops::SerialiseHistogram), from which stains are fitted. It lies
/// in the folder of that level, where readers of Zarr that list a group do not stumble over it.
inline constexpr char kStainColoursFile[] = "0/stain.colours";
inline constexpr std::size_t kMaxTiedBytes = std::size_t{32} << 20;

inline Digest TieOf(std::span<const std::byte> content, const Digest& pixels) {
  Sha256 hash;
  hash.Update(pixels.Hex());
  hash.Update(content);
  return hash.Finish();
}

/// The bytes of such a file.
inline std::vector<std::byte> TiedBytes(std::span<const std::byte> content, const Digest& pixels) {
  const Digest tie = TieOf(content, pixels);
  const auto head = std::as_bytes(std::span(tie.bytes));
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), content.begin(), content.end());
  return bytes;
}

/// The content of the file at `path` of a store of these pixels. NotFound without the file;
/// DataLoss for another than was written.
inline StatusOr<std::string> ReadTied(const Folders& allowed, const std::string& path,
                                      const Digest& pixels) {
  PB_ASSIGN_OR_RETURN(std::string bytes, ReadFile(allowed, path, kMaxTiedBytes));
  const Digest none;
  const std::size_t head = std::min(bytes.size(), none.bytes.size());
  const std::span<const std::byte> content = AsBytes(bytes).subspan(head);
  const Digest tie = TieOf(content, pixels);
  const auto expected = std::as_bytes(std::span(tie.bytes));
  if (!std::equal(expected.begin(), expected.end(), AsBytes(bytes).begin(),
                  AsBytes(bytes).begin() + static_cast<std::ptrdiff_t>(head))) {
    return DataLoss("another file than was written");
  }
  return bytes.substr(head);
}

}  // namespace patchbay::zarr
