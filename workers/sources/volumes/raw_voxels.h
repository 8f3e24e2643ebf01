// Voxels that lie one after another in a file, x fastest: what NIfTI, NRRD and MetaImage share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/os/folders.h"
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

/// The header of a file: `volume` has everything but the voxels and their type.
struct RawVolume {
  Volume volume;
  RawVoxels raw;
};

/// Without reading voxels: DataLoss for a file that cannot hold what the header promises,
/// InvalidArgument for a size or a scale of values that cannot be.
Status CheckRawVoxels(const Folders& allowed, const std::string& path, const RawVoxels& raw);

/// Calls `slice` with the values of one slice after another, until it returns false. Errors of the
/// file as of ReadRawVolume.
Status ForEachSlice(const Folders& allowed, const std::string& path, const RawVoxels& raw,
                    const std::function<bool(std::span<const float> values)>& slice);

/// Reads the voxels: int16 where the source holds integers, slope and intercept are whole and every
/// value fits, else float32. CheckRawVoxels goes before memory is spent.
StatusOr<Volume> ReadRawVolume(const Folders& allowed, const std::string& path, RawVolume header,
                               const VolumeProgress& progress);

}  // namespace patchbay::workers
