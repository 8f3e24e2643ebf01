// Voxels that lie one after another in a file, x fastest: what NIfTI, NRRD and MetaImage share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "workers/sources/volumes/byte_stream.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

struct RawVoxels {
  Extent size;
  DType stored = DType::kInt16;  ///< any integer of up to 32 bits, float32 or float64
  bool is_big_endian = false;
  double slope = 1, intercept = 0;
  std::uint64_t offset = 0;           ///< of the voxels in the file, or of the compressed bytes
  std::uint64_t inflated_offset = 0;  ///< of the voxels in the inflated bytes
  ByteStream::Packing packing = ByteStream::Packing::kNone;
};

/// Reads into volume.size, dtype and voxels: int16 where the source holds integers, slope and
/// intercept are whole and every value fits, else float32. What the header promises is held against
/// the file's size before memory is spent.
Status ReadRawVoxels(const std::string& path, const RawVoxels& raw, const VolumeProgress& progress,
                     Volume& volume);

}  // namespace patchbay::workers
