#include "workers/sources/volumes/label_volume.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
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

/// The most voxels that are looked at of a volume that is all background so far.
constexpr std::int64_t kMostVoxels = std::int64_t{1} << 27;

}  // namespace

StatusOr<LabelVolume> ReadLabelVolume(const Folders& allowed, const std::string& path,
                                      const VolumeProgress& progress) {
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
