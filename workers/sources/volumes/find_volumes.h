// Finds the volumes below a path, and reads one of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/os/folders.h"
#include "workers/sources/volumes/dicom_series.h"
#include "workers/sources/volumes/dicom_volume.h"
#include "workers/sources/volumes/raw_voxels.h"
#include "workers/sources/volumes/series_repair.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxVolumeFiles = 200'000;

enum class VolumeFormat { kNone, kDicom, kNifti, kNrrd, kMetaImage };

/// The format by the file's content; MetaImage, which has no signature, by its name.
VolumeFormat FormatOf(const Folders& allowed, const std::string& path);

/// A file of another format, with that of its voxels if these lie apart, or the files of one DICOM
/// series.
struct FoundVolume {
  /// "scan.nii.gz", "study#1.2.840...": the path as named, followed by the UID for a DICOM series.
  std::string name;
  VolumeFormat format = VolumeFormat::kNone;
  std::vector<std::string> files;  ///< canonical; a series' sorted, else the header's first
  std::uint64_t voxel_bytes = 0;   ///< about, for an estimate
  std::string series_uid = {};     ///< UID of a DICOM series; "": it has none
  std::int64_t channels = 1;       ///< volumes in the file, one after another
};

struct FoundVolumes {
  std::vector<FoundVolume> volumes;
  std::size_t other_dicom = 0;  ///< without pixels: reports, plans, DICOMDIR; and segmentations
  /// Files that look like DICOM or have a volume's extension, but are no volumes.
  std::vector<std::string> unreadable;
};

/// The canonical path of a file that may be read, or why it may not.
using MayRead = std::function<StatusOr<std::string>(const std::string&)>;

/// All volumes below `path`: a file, or a folder, searched with its subfolders except stores and
/// names that begin with a dot. Paths that may not be read are skipped, but files with a volume's
/// extension are listed as unreadable. A DICOMDIR stands for its folder. Slides, reports, plans,
/// presentations and segmentations are skipped. Empty when there is none.
StatusOr<FoundVolumes> FindVolumes(const Folders& allowed, const std::string& path,
                                   const MayRead& may_read, const VolumeProgress& progress);

/// The series of these files, as repaired. InvalidArgument when they are not of one, and where a
/// part is asked for and the series is not split into as many.
StatusOr<DicomSeries> OpenSeries(const Folders& allowed, const std::vector<std::string>& files,
                                 const VolumeProgress& progress, const SeriesRepair& repair = {});
/// The same with all parts into which it is split.
StatusOr<RepairedSeries> OpenParts(const Folders& allowed, const std::vector<std::string>& files,
                                   const VolumeProgress& progress, const Repairs& rules);

/// Reads the header of a NIfTI, NRRD or MetaImage file: its size, its place under that policy with
/// the axes as the file has them, and the type of its voxels, which the file is long enough for.
/// Refuses the headers that ReadVolume refuses, with the same words. `number`: that of a volume in
/// a file of several.
StatusOr<RawVolume> ReadVolumeHeader(const Folders& allowed, VolumeFormat format,
                                     const std::string& path,
                                     GeometryPolicy policy = GeometryPolicy::kRefuse,
                                     std::optional<std::int64_t> number = std::nullopt);

struct ReadVolumeOptions {
  GeometryPolicy geometry = GeometryPolicy::kRefuse;
  bool is_canonical = true;                 ///< false: axes as the source has them
  SeriesRepair repair = {};                 ///< for a DICOM series
  std::optional<std::int64_t> number = {};  ///< the volume of a file that has several, from 0
};

/// Reads the voxels of a volume that FindVolumes found. Messages hold no path.
StatusOr<Volume> ReadVolume(const Folders& allowed, VolumeFormat format,
                            const std::vector<std::string>& files, const ReadVolumeOptions& options,
                            const VolumeProgress& progress);

/// "dicom", "nifti", "nrrd", "mha".
std::string_view NameOf(VolumeFormat format);
StatusOr<VolumeFormat> VolumeFormatFromName(std::string_view name);

}  // namespace patchbay::workers
