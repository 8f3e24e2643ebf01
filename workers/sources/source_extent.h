// Checks the length of a file against its headers: a source is hashed whole, and one that ends in a
// hole of terabytes would be hashed for hours.
#pragma once

#include <cstdint>

#include "runtime/core/status.h"
#include "workers/sources/tiff_index.h"

namespace patchbay::workers {

/// The most bytes after the data that the headers name: some writers append data that no header
/// names.
inline constexpr std::uint64_t kMaxUnnamedBytes = std::uint64_t{64} << 20;

/// InvalidArgument for a file of more than twice `named_bytes`, which its headers name, and
/// kMaxUnnamedBytes.
Status CheckFileExtent(std::uint64_t file_bytes, std::uint64_t named_bytes);

/// The check for a TIFF, with all its directories, their values and their tiles or strips.
Status CheckTiffExtent(const TiffIndex& index);

}  // namespace patchbay::workers
