#include "workers/sources/volumes/dicom_volume.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_pixels.h"
#include "workers/sources/volumes/even_slices.h"

namespace patchbay::workers {
namespace {

constexpr char kSlicePayload[] = "patchbay/slice";

bool IsWhole(double value) { return value == std::floor(value) && std::abs(value) < 1e6; }

bool NeedsFloat(const DicomSeries& series, const Judgement& judgement) {
  return std::any_of(judgement.order.begin(), judgement.order.end(), [&](const SliceRef& slice) {
    const DicomFrame& frame = series.FrameOf(slice);
    return !IsWhole(frame.slope) || !IsWhole(frame.intercept);
  });
}

bool IsPadding(const DicomFile& file, std::int32_t stored) {
  if (!file.padding) return false;
  const int other = file.padding_limit.value_or(*file.padding);
  return stored >= std::min(*file.padding, other) && stored <= std::max(*file.padding, other);
}

/// Reads slice after slice into the volume.
class SliceReader {
 public:
  SliceReader(const Folders& allowed, const DicomSeries& series, Volume& volume,
              const VolumeProgress& progress)
      : allowed_(allowed), series_(series), volume_(volume), progress_(progress) {}

  Status ReadAll(const std::vector<SliceRef>& order) {
    const auto pixels = static_cast<std::size_t>(volume_.size.y * volume_.size.x);
    stored_.resize(pixels);
    for (std::size_t k = 0; k < order.size(); ++k) {
      const SliceRef& slice = order[k];
      const Status read = Read(slice, k * pixels);
      if (!read.ok()) {
        Status failed = Annotate(read, StrCat("slice ", k + 1, " of ", order.size()));
        failed.SetPayload(kSlicePayload, absl::Cord(absl::string_view(std::to_string(k))));
        return failed;
      }
      if (progress_) PB_RETURN_IF_ERROR(progress_());
    }
    return absl::OkStatus();
  }

  /// A real value that int16 has no room for: the volume must be read again as float32.
  bool overflowed() const { return overflowed_; }
  Json Log() const {
    Json step = {{"step", "stored values to HU"}, {"padding_voxels", padding_}};
    if (clamped_ > 0) step["padding_without_an_int16_value"] = clamped_;
    if (sign_differs_) step["jpeg2000_sign"] = "differs from PixelRepresentation, which holds";
    return step;
  }

 private:
  Status Read(const SliceRef& slice, std::size_t begin) {
    const DicomFile& file = series_.FileOf(slice);
    if (opened_ == nullptr || opened_file_ != slice.file) {
      PB_ASSIGN_OR_RETURN(opened_, DicomPixels::Open(allowed_, file));
      opened_file_ = slice.file;
    }
    PB_RETURN_IF_ERROR(opened_->Read(slice.frame, stored_));
    sign_differs_ |= opened_->sign_differs();
    const DicomFrame& frame = series_.FrameOf(slice);
    if (volume_.dtype == DType::kInt16) {
      PutInt16(file, frame, reinterpret_cast<std::int16_t*>(volume_.voxels.data()) + begin);
    } else {
      auto* out = reinterpret_cast<float*>(volume_.voxels.data()) + begin;
      for (const std::int32_t v : stored_) {
        padding_ += IsPadding(file, v) ? 1 : 0;
        *out++ = static_cast<float>(frame.slope * v + frame.intercept);
      }
    }
    return absl::OkStatus();
  }

  void PutInt16(const DicomFile& file, const DicomFrame& frame, std::int16_t* out) {
    using Limits = std::numeric_limits<std::int16_t>;
    const auto slope = static_cast<std::int64_t>(frame.slope),
               intercept = static_cast<std::int64_t>(frame.intercept);
    for (const std::int32_t v : stored_) {
      const bool is_padding = IsPadding(file, v);
      std::int64_t hu = slope * v + intercept;
      padding_ += is_padding ? 1 : 0;
      if (hu < Limits::min() || hu > Limits::max()) {
        overflowed_ |= !is_padding;
        clamped_ += is_padding ? 1 : 0;
        hu = Limits::min();
      }
      *out++ = static_cast<std::int16_t>(hu);
    }
  }

  const Folders& allowed_;
  const DicomSeries& series_;
  Volume& volume_;
  const VolumeProgress& progress_;
  std::vector<std::int32_t> stored_;
  std::unique_ptr<DicomPixels> opened_;
  std::size_t opened_file_ = 0;
  std::uint64_t padding_ = 0, clamped_ = 0;
  bool overflowed_ = false, sign_differs_ = false;
};

Affine AffineOf(const DicomSeries& series, const Judgement& j) {
  const DicomFrame &first = series.FrameOf(j.order.front()), &last = series.FrameOf(j.order.back());
  Affine affine;
  // Files round the cosines: steps keep the length that is said.
  affine.x = *first.row * (first.column_step / Norm(*first.row));
  affine.y = *first.column * (first.row_step / Norm(*first.column));
  affine.z = (*last.position - *first.position) * (1.0 / static_cast<double>(j.order.size() - 1));
  affine.origin = *first.position;
  return affine;
}

/// A file may say CT and hold something else. Air, or padding, is in every CT.
Status CheckPlausible(const DicomSeries& series, const Volume& volume) {
  const DicomFile& file = series.files.front();
  if (file.has_tube_voltage || RangeOf(volume).min <= kLeastPlausibleHu) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat("read series: ", NameOf(Verdict::kNotCt),
             ": the file says CT, but there is no tube voltage and no value below ",
             kLeastPlausibleHu, ": these are not Hounsfield units"));
}

/// The frames of reference, each once.
std::vector<std::string> FramesOf(const DicomSeries& series, const Judgement& judgement) {
  std::vector<std::string> frames;
  std::set<std::string> seen;
  for (const SliceRef& slice : judgement.order) {
    const std::string& frame = series.FileOf(slice).frame_of_reference;
    if (!frame.empty() && seen.insert(frame).second) frames.push_back(frame);
  }
  return frames;
}

Json FactsOf(const DicomSeries& series, const Judgement& judgement) {
  Json facts = series.FileOf(judgement.order.front()).facts;
  facts["verdict"] = NameOf(judgement.verdict);
  if (!judgement.reason.empty()) facts["verdict_reason"] = judgement.reason;
  facts["slices"] = judgement.order.size();
  facts["step_mm"] = judgement.step_mm;
  facts["step_tolerance_mm"] = judgement.tolerance_mm;
  facts["step_deviation_mm"] = judgement.deviation_mm;
  facts["tilt_deg"] = judgement.tilt_deg;
  return facts;
}

Json OrderLog(const Judgement& judgement, GeometryPolicy policy) {
  Json step = {{"step", "order slices"}, {"by", "position along the slice normal"}};
  if (judgement.verdict != Verdict::kUniform) {
    step["verdict"] = NameOf(judgement.verdict);
    step["geometry"] = NameOf(policy);
  }
  return step;
}

}  // namespace

std::string_view NameOf(GeometryPolicy policy) {
  constexpr std::string_view kNames[] = {"refuse", "resample", "accept"};
  return kNames[static_cast<std::size_t>(policy)];
}

StatusOr<GeometryPolicy> GeometryPolicyFromName(std::string_view name) {
  for (const auto policy :
       {GeometryPolicy::kRefuse, GeometryPolicy::kResample, GeometryPolicy::kAccept}) {
    if (NameOf(policy) == name) return policy;
  }
  return absl::InvalidArgumentError(
      StrCat("geometry: '", name, "' is not a policy: refuse, resample or accept"));
}

Status CheckGeometry(const Judgement& judgement, GeometryPolicy policy) {
  switch (judgement.verdict) {
    case Verdict::kUniform:
      return absl::OkStatus();
    case Verdict::kGap:
    case Verdict::kVariable:
    case Verdict::kTilted:
      if (policy != GeometryPolicy::kRefuse) return absl::OkStatus();
      return absl::FailedPreconditionError(
          StrCat("read series: ", NameOf(judgement.verdict), ": ", judgement.reason,
                 " (--geometry resample or accept takes it as it says)"));
    default:
      return absl::FailedPreconditionError(
          StrCat("read series: ", NameOf(judgement.verdict), ": ", judgement.reason));
  }
}

std::optional<std::size_t> SliceAtFault(const Status& status) {
  const auto slice = status.GetPayload(kSlicePayload);
  if (!slice) return std::nullopt;
  return std::stoul(std::string(*slice));
}

StatusOr<Volume> ReadDicomVolume(const Folders& allowed, const DicomSeries& series,
                                 const Judgement& judgement, GeometryPolicy policy,
                                 const VolumeProgress& progress) {
  PB_RETURN_IF_ERROR(CheckGeometry(judgement, policy));
  const DicomFile& file = series.FileOf(judgement.order.front());
  Volume volume;
  volume.kind = "dicom";
  volume.size = {static_cast<std::int64_t>(judgement.order.size()), file.rows, file.columns};
  PB_RETURN_IF_ERROR(CheckVolumeSize(volume.size, "read series"));
  volume.affine = AffineOf(series, judgement);
  volume.identity = {file.patient, file.study, file.series, FramesOf(series, judgement)};
  volume.facts = FactsOf(series, judgement);
  volume.log.push_back(OrderLog(judgement, policy));
  if (!judgement.warning.empty()) volume.warnings.push_back(judgement.warning);
  for (const SliceRef& slice : judgement.order) {
    volume.slice_positions.push_back(*series.FrameOf(slice).position);
  }
  for (const bool as_float : {NeedsFloat(series, judgement), true}) {
    volume.dtype = as_float ? DType::kFloat32 : DType::kInt16;
    PB_RETURN_IF_ERROR(AllocateVoxels(volume));
    SliceReader reader(allowed, series, volume, progress);
    PB_RETURN_IF_ERROR(reader.ReadAll(judgement.order));
    if (reader.overflowed()) continue;
    volume.log.push_back(reader.Log());
    break;
  }
  PB_RETURN_IF_ERROR(CheckPlausible(series, volume));
  if (judgement.verdict != Verdict::kUniform && policy == GeometryPolicy::kResample) {
    PB_RETURN_IF_ERROR(MakeEven(volume, judgement.places_mm, judgement.step_mm));
  }
  return volume;
}

}  // namespace patchbay::workers
