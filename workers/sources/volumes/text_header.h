// NRRD and MetaImage: a text header, then voxels, in the same file or in one beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/raw_voxels.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

/// NRRD: raw or gzip, three axes, a patient space (LPS or RAS). Without a
/// space it needs kAccept, as NIfTI without orientation. InvalidArgument for skewed axes and
/// malformed headers and a data file elsewhere, NotFound without one, Unimplemented for several
/// data files, other encodings and further axes.
StatusOr<RawVolume> ReadNrrdVolumeHeader(const Folders& allowed, const std::string& path,
                                         GeometryPolicy policy);

/// A segment of a .seg.nrrd as 3D Slicer writes it: the voxels of one value in one layer.
struct NrrdSegment {
  std::string name;
  std::size_t layer = 0;
  std::uint8_t value = 1;
};
/// Layers lie interleaved: `volume` is as wide as all of them, its affine is that of one.
struct SegmentedNrrd {
  Volume volume;
  std::int64_t layers = 1;
  std::vector<NrrdSegment> segments;  ///< in the file's order
};
/// Whether the header names segments.
StatusOr<bool> HasNrrdSegments(const Folders& allowed, const std::string& path);
/// Three axes, or four of which the first is a list of layers. InvalidArgument also for segments
/// without a name, in a layer that is not there, or of a value outside 1 to 255.
StatusOr<SegmentedNrrd> ReadSegmentedNrrd(const Folders& allowed, const std::string& path,
                                          const VolumeProgress& progress);

/// MetaImage, raw or compressed. The same rules.
StatusOr<RawVolume> ReadMetaImageHeader(const Folders& allowed, const std::string& path,
                                        GeometryPolicy policy);

}  // namespace patchbay::workers
