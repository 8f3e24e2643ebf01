// Contiguous voxels in a file, x fastest: the common part of NIfTI, NRRD and MetaImage.
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
  std::string file = {};  ///< the file of the voxels; "": the header's own
  Extent size;
  DType stored = DType::kInt16;  ///< any integer of up to 32 bits, float32 or float64
  bool is_big_endian = false;
  double slope = 1, intercept = 0;
  std::uint64_t offset = 0;           ///< file offset of the voxels, or of the compressed bytes
  std::uint64_t inflated_offset = 0;  ///< offset of the voxels in the inflated bytes
  std::uint64_t further_bytes = 0;    ///< bytes of further volumes after them
  ByteStream::Packing packing = ByteStream::Packing::kNone;
};

/// The header of a file: `volume` has everything but the voxels and their type.
struct RawVolume {
  Volume volume;
  RawVoxels raw;
  std::int64_t channels = 1;  ///< volumes of this size, one after another
};

/// The header of one volume of a file that has several. Unimplemented without a number of a file
/// that has them, InvalidArgument for a number beyond.
StatusOr<RawVolume> VolumeOf(RawVolume header, std::optional<std::int64_t> number);

/// Checks without reading voxels: DataLoss for a file too short for its header, InvalidArgument for
/// an impossible size or scale of values, and for a file of plain voxels alone that is longer.
Status CheckRawVoxels(const Folders& allowed, const std::string& path, const RawVoxels& raw);

/// Calls `slice` with the values of one slice after another, until it returns false. Errors of the
/// file as of ReadRawVolume.
Status ForEachSlice(const Folders& allowed, const std::string& path, const RawVoxels& raw,
                    const std::function<bool(std::span<const float> values)>& slice);

/// Reads the voxels: int16 where the source holds integers, slope and intercept are whole and every
/// value fits, else float32. CheckRawVoxels is called before memory is allocated.
StatusOr<Volume> ReadRawVolume(const Folders& allowed, const std::string& path, RawVolume header,
                               const VolumeProgress& progress);

}  // namespace patchbay::workers
