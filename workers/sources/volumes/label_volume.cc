#include "workers/sources/volumes/label_volume.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/os/folder_listing.h"
#include "workers/sources/volumes/dicom_segmentation.h"
#include "workers/sources/volumes/find_volumes.h"
#include "workers/sources/volumes/mask_file.h"
#include "workers/sources/volumes/raw_voxels.h"
#include "workers/sources/volumes/text_header.h"

namespace patchbay::workers {
namespace {

Status NoClass(double value) {
  return InvalidArgument("read labels: a voxel of ", value,
                         ": values of classes are whole, 0 to 255");
}

template <typename T>
Status TakeValues(const Volume& volume, std::vector<std::uint8_t>& out) {
  const auto* from = reinterpret_cast<const T*>(volume.voxels.data());
  out.resize(static_cast<std::size_t>(volume.size.Pixels()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto value = static_cast<double>(from[i]);
    if (!(value >= 0 && value <= 255) || value != std::floor(value)) return NoClass(value);
    out[i] = static_cast<std::uint8_t>(value);
  }
  return absl::OkStatus();
}

StatusOr<std::vector<std::uint8_t>> ValuesOf(const Volume& volume) {
  std::vector<std::uint8_t> values;
  PB_RETURN_IF_ERROR(volume.dtype == DType::kInt16 ? TakeValues<std::int16_t>(volume, values)
                                                   : TakeValues<float>(volume, values));
  return values;
}

/// Layers lie interleaved: voxel i of layer k is value i * layers + k.
StatusOr<LabelVolume> ReadNamedSegments(const Folders& allowed, const std::string& path,
                                        const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(SegmentedNrrd nrrd, ReadSegmentedNrrd(allowed, path, progress));
  LabelVolume labels;
  labels.format = "seg-nrrd";
  labels.affine = nrrd.volume.affine;
  labels.size = nrrd.volume.size;
  labels.size.x /= nrrd.layers;
  PB_ASSIGN_OR_RETURN(std::vector<std::uint8_t> layers, ValuesOf(nrrd.volume));
  for (const NrrdSegment& segment : nrrd.segments) labels.segments.push_back(segment.name);
  labels.paint = [values = std::move(layers), segments = std::move(nrrd.segments),
                  count = static_cast<std::size_t>(nrrd.layers)](
                     std::size_t segment, std::uint8_t value, std::span<std::uint8_t> out) {
    const NrrdSegment& one = segments[segment];
    const std::uint8_t* from = values.data() + one.layer;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (from[i * count] == one.value) out[i] = value;
    }
    return absl::OkStatus();
  };
  return labels;
}

constexpr std::string_view kMaskEndings[] = {".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".nhdr"};

/// The files of a folder that may be masks, by their names without the ending.
StatusOr<std::map<std::string, std::string>> MasksIn(const Folders& allowed,
                                                     const std::string& folder) {
  std::map<std::string, std::string> files;
  PB_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(allowed, folder));
  for (const std::string& name : names) {
    const auto ending = std::find_if(std::begin(kMaskEndings), std::end(kMaskEndings),
                                     [&name](std::string_view one) { return name.ends_with(one); });
    if (ending == std::end(kMaskEndings) || name.starts_with('.')) continue;
    const std::string segment = name.substr(0, name.size() - ending->size());
    if (!files.emplace(segment, StrCat(folder, "/", name)).second) {
      return InvalidArgument("read labels: two files of the name '", segment, "'");
    }
  }
  if (!files.empty() && files.size() <= kMaxSegments) return files;
  return InvalidArgument("read labels: a folder of ", files.size(), " masks, not 1 to ",
                         kMaxSegments);
}

StatusOr<LabelVolume> ReadMask(const Folders& allowed, const std::string& path,
                               const VolumeProgress& progress) {
  const VolumeFormat format = FormatOf(allowed, path);
  if (format == VolumeFormat::kNone || format == VolumeFormat::kDicom) {
    return InvalidArgument("neither NIfTI, NRRD nor MHA");
  }
  PB_ASSIGN_OR_RETURN(const Volume volume,
                      ReadVolume(allowed, format, {path}, {.is_canonical = false}, progress));
  LabelVolume mask;
  mask.size = volume.size;
  mask.affine = volume.affine;
  PB_ASSIGN_OR_RETURN(mask.values, ValuesOf(volume));
  const bool is_mask = std::all_of(mask.values.begin(), mask.values.end(),
                                   [](std::uint8_t value) { return value <= 1; });
  return is_mask ? StatusOr<LabelVolume>(std::move(mask))
                 : InvalidArgument("values other than 0 and 1");
}

bool IsSameGrid(const LabelVolume& a, const LabelVolume& b) {
  const auto corner = [](const LabelVolume& of, double i, double j, double k) {
    return of.affine.At(i * static_cast<double>(of.size.x), j * static_cast<double>(of.size.y),
                        k * static_cast<double>(of.size.z));
  };
  const double step = std::min({Norm(a.affine.x), Norm(a.affine.y), Norm(a.affine.z)});
  bool is_same = a.size == b.size;
  for (int bits = 0; bits < 8; ++bits) {
    const double i = bits & 1, j = bits >> 1 & 1, k = bits >> 2;
    is_same = is_same && Norm(corner(a, i, j, k) - corner(b, i, j, k)) <= 0.01 * step;
  }
  return is_same;
}

/// A file an organ, as TotalSegmentator writes them. Each is read when it is painted.
StatusOr<LabelVolume> ReadMaskFolder(const Folders& allowed, const std::string& path,
                                     const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(auto files, MasksIn(allowed, path));
  LabelVolume labels;
  labels.format = "folder";
  std::vector<std::string> paths;
  for (const auto& [name, file] : files) {
    labels.segments.push_back(name);
    paths.push_back(file);
  }
  const auto read = [&allowed, progress](const std::string& name, const std::string& file) {
    StatusOr<LabelVolume> mask = ReadMask(allowed, file, progress);
    if (mask.ok()) return mask;
    return StatusOr<LabelVolume>(Annotate(mask.status(), StrCat("read labels: '", name, "'")));
  };
  PB_ASSIGN_OR_RETURN(LabelVolume first, read(labels.segments[0], paths[0]));
  labels.size = first.size;
  labels.affine = first.affine;
  first.values = {};
  labels.paint = [read, paths = std::move(paths), names = labels.segments,
                  first = std::move(first)](std::size_t segment, std::uint8_t value,
                                            std::span<std::uint8_t> out) -> Status {
    PB_ASSIGN_OR_RETURN(const LabelVolume mask, read(names[segment], paths[segment]));
    if (!IsSameGrid(first, mask)) {
      return InvalidArgument("read labels: '", names[segment], "': on another grid than '",
                             names[0], "'");
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (mask.values[i] != 0) out[i] = value;
    }
    return absl::OkStatus();
  };
  return labels;
}

/// The most voxels that are looked at of a volume that is all background so far.
constexpr std::int64_t kMostVoxels = std::int64_t{1} << 27;

}  // namespace

StatusOr<LabelVolume> ReadLabelVolume(const Folders& allowed, const std::string& path,
                                      const VolumeProgress& progress) {
  if (IsFolder(allowed, path)) return ReadMaskFolder(allowed, path, progress);
  const VolumeFormat format = FormatOf(allowed, path);
  if (format == VolumeFormat::kDicom) return ReadDicomSegmentation(allowed, path, progress);
  if (format == VolumeFormat::kNrrd) {
    PB_ASSIGN_OR_RETURN(const bool has_segments, HasNrrdSegments(allowed, path));
    if (has_segments) return ReadNamedSegments(allowed, path, progress);
  }
  if (format == VolumeFormat::kNone) {
    return InvalidArgument(
        "read labels: neither NIfTI, NRRD, MHA nor DICOM SEG: of a volume these are read");
  }
  PB_ASSIGN_OR_RETURN(const Volume volume,
                      ReadVolume(allowed, format, {path}, {.is_canonical = false}, progress));
  LabelVolume labels;
  labels.format = NameOf(format);
  labels.size = volume.size;
  labels.affine = volume.affine;
  PB_ASSIGN_OR_RETURN(labels.values, ValuesOf(volume));
  labels.ignores_255 = IsExportedVolumeMask(allowed, path);
  return labels;
}

StatusOr<std::vector<std::string>> LabelFiles(const Folders& allowed, const std::string& path) {
  if (!IsFolder(allowed, path)) return std::vector{path};
  PB_ASSIGN_OR_RETURN(const auto masks, MasksIn(allowed, path));
  std::vector<std::string> files;
  for (const auto& [name, file] : masks) files.push_back(file);
  return files;
}

bool ClassValues::Add(double value) {
  if (is_image_ || !(value >= 0 && value <= 255) || value != std::floor(value)) {
    is_image_ = true;
    return false;
  }
  const auto at = static_cast<std::size_t>(value);
  if (seen_[at]) return true;
  seen_[at] = true;
  largest_ = std::max(largest_, at);
  is_image_ = ++count_ > kMost;
  return !is_image_;
}

std::string ClassValues::ToString() const {
  if (is_image_ || count_ == 0) return "";
  return StrCat("only ", Counted(count_, "distinct value"), ", all whole numbers up to ", largest_);
}

StatusOr<std::string> ClassesIn(const Folders& allowed, VolumeFormat format,
                                const std::string& path, const VolumeProgress& progress) {
  const auto header = ReadVolumeHeader(allowed, format, path, GeometryPolicy::kAccept);
  if (!header.ok()) return std::string();
  ClassValues values;
  Status stopped;
  std::int64_t left = kMostVoxels;
  const auto slice = [&](std::span<const float> voxels) {
    if (progress) stopped = progress();
    for (const float voxel : voxels) {
      if (!values.Add(static_cast<double>(voxel))) return false;
    }
    left -= static_cast<std::int64_t>(voxels.size());
    return stopped.ok() && left > 0;
  };
  const Status read = ForEachSlice(allowed, path, header->raw, slice);
  PB_RETURN_IF_ERROR(stopped);
  return read.ok() ? values.ToString() : std::string();
}

}  // namespace patchbay::workers
