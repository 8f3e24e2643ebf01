#include "workers/sources/volumes/dicom_volume.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_pixels.h"
#include "workers/sources/volumes/volume.h"

namespace patchbay::workers {
namespace {

constexpr float kOutsideHu = -1024, kOutsideOther = 0;
constexpr auto kPolicies = NamesInOrder<GeometryPolicy>("refuse", "resample", "accept");

/// A slice's shift across the stack, in pixels.
struct Shift {
  double y = 0, x = 0;
};

struct Margins {
  std::int64_t before_y = 0, after_y = 0, before_x = 0, after_x = 0;
  float value = kOutsideHu;
};

std::int64_t Up(double value) { return static_cast<std::int64_t>(std::ceil(value - 1e-6)); }

/// CT states a unit only where it is another.
bool IsInHu(const Json& facts) {
  return facts.value("modality", "") == "CT" && !facts.contains("unit");
}

Margins MarginsOf(const std::vector<Shift>& shifts) {
  Margins m;
  for (const Shift& s : shifts) {
    m.before_y = std::max(m.before_y, Up(-s.y));
    m.after_y = std::max(m.after_y, Up(s.y));
    m.before_x = std::max(m.before_x, Up(-s.x));
    m.after_x = std::max(m.after_x, Up(s.x));
  }
  return m;
}

float ValueAt(const Volume& volume, const Margins& margins, const Point& at) {
  const auto& [z, y, x] = at;
  if (y < 0 || x < 0 || y >= volume.size.y || x >= volume.size.x) return margins.value;
  const auto i = static_cast<std::size_t>((z * volume.size.y + y) * volume.size.x + x);
  if (volume.dtype == DType::kInt16) {
    return reinterpret_cast<const std::int16_t*>(volume.voxels.data())[i];
  }
  return reinterpret_cast<const float*>(volume.voxels.data())[i];
}

/// Slice z of the volume moved by its shift onto the grown plane.
void MoveSlice(const Volume& volume, std::int64_t z, const Shift& shift, const Margins& m,
               const Extent& plane, std::vector<float>& out) {
  const double from_y = -static_cast<double>(m.before_y) - shift.y,
               from_x = -static_cast<double>(m.before_x) - shift.x;
  const double floor_y = std::floor(from_y), floor_x = std::floor(from_x);
  const auto wy = static_cast<float>(from_y - floor_y), wx = static_cast<float>(from_x - floor_x);
  const auto begin_y = static_cast<std::int64_t>(floor_y),
             begin_x = static_cast<std::int64_t>(floor_x);
  for (std::int64_t y = 0; y < plane.y; ++y) {
    for (std::int64_t x = 0; x < plane.x; ++x) {
      const std::int64_t sy = begin_y + y, sx = begin_x + x;
      float value = ValueAt(volume, m, {z, sy, sx});
      if (wx > 0) value += wx * (ValueAt(volume, m, {z, sy, sx + 1}) - value);
      if (wy > 0) {
        float below = ValueAt(volume, m, {z, sy + 1, sx});
        if (wx > 0) below += wx * (ValueAt(volume, m, {z, sy + 1, sx + 1}) - below);
        value += wy * (below - value);
      }
      out[static_cast<std::size_t>(y * plane.x + x)] = value;
    }
  }
}

void PutSlice(Volume& to, std::int64_t z, const std::vector<float>& values) {
  const std::size_t begin = static_cast<std::size_t>(z) * values.size();
  if (to.dtype == DType::kFloat32) {
    std::copy(values.begin(), values.end(), reinterpret_cast<float*>(to.voxels.data()) + begin);
    return;
  }
  auto* out = reinterpret_cast<std::int16_t*>(to.voxels.data()) + begin;
  for (const float v : values) {
    *out++ = static_cast<std::int16_t>(std::clamp(std::nearbyint(v), -32768.0f, 32767.0f));
  }
}

/// The moved slices around the one that is made, two at a time.
class MovedSlices {
 public:
  MovedSlices(const Volume& volume, const std::vector<Shift>& shifts, const Margins& margins,
              const Extent& plane)
      : volume_(volume), shifts_(shifts), margins_(margins), plane_(plane) {
    for (auto& slice : held_) slice.resize(static_cast<std::size_t>(plane.y * plane.x));
  }
  const std::vector<float>& At(std::size_t k) {
    std::vector<float>& slice = held_[k % 2];
    if (number_[k % 2] != static_cast<std::int64_t>(k)) {
      MoveSlice(volume_, static_cast<std::int64_t>(k), shifts_[k], margins_, plane_, slice);
      number_[k % 2] = static_cast<std::int64_t>(k);
    }
    return slice;
  }

 private:
  const Volume& volume_;
  const std::vector<Shift>& shifts_;
  const Margins& margins_;
  const Extent& plane_;
  std::vector<float> held_[2];
  std::int64_t number_[2] = {-1, -1};
};

/// Resamples a volume whose slices lie at `places_mm` (ascending, along the slice normal) and at
/// volume.slice_positions, onto steps of `step_mm`: first every slice by its own shift across the
/// stack (linear, with -1024 where nothing was scanned, 0 of MR and PET; the grid grows so that
/// nothing is lost), then linear between neighbouring slices. Records the step in the volume's log
/// and makes its affine orthogonal. Values are rounded to the volume's type.
Status MakeEven(Volume& volume, const std::vector<double>& places, double step_mm) {
  const Vec3 row = volume.affine.x * (1 / Norm(volume.affine.x)),
             column = volume.affine.y * (1 / Norm(volume.affine.y));
  const Vec3 normal = Cross(row, column);
  const Vec3 first = volume.slice_positions.front();
  std::vector<Shift> shifts;
  for (const Vec3& position : volume.slice_positions) {
    shifts.push_back({Dot(position - first, column) / Norm(volume.affine.y),
                      Dot(position - first, row) / Norm(volume.affine.x)});
  }
  Margins margins = MarginsOf(shifts);
  if (!IsInHu(volume.facts)) margins.value = kOutsideOther;
  Volume even;
  even.dtype = volume.dtype;
  even.size.z = std::llround((places.back() - places.front()) / step_mm) + 1;
  even.size.y = volume.size.y + margins.before_y + margins.after_y;
  even.size.x = volume.size.x + margins.before_x + margins.after_x;
  PB_RETURN_IF_ERROR(CheckVolumeSize(even.size, "resample slices"));
  PB_RETURN_IF_ERROR(AllocateVoxels(even));
  const Extent plane{1, even.size.y, even.size.x};
  MovedSlices moved(volume, shifts, margins, plane);
  std::vector<float> values(static_cast<std::size_t>(plane.y * plane.x));
  std::size_t below = 0;
  for (std::int64_t z = 0; z < even.size.z; ++z) {
    const double at = places.front() + static_cast<double>(z) * step_mm;
    while (below + 2 < places.size() && places[below + 1] <= at) ++below;
    const double weight =
        std::clamp((at - places[below]) / (places[below + 1] - places[below]), 0.0, 1.0);
    const std::vector<float>&a = moved.At(below), &b = moved.At(below + 1);
    const auto w = static_cast<float>(weight);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = a[i] + w * (b[i] - a[i]);
    PutSlice(even, z, values);
  }
  volume.voxels = std::move(even.voxels);
  volume.size = even.size;
  volume.affine.z = normal * step_mm;
  volume.affine.origin = first - volume.affine.y * static_cast<double>(margins.before_y) -
                         volume.affine.x * static_cast<double>(margins.before_x);
  volume.slice_positions.clear();
  for (std::int64_t z = 0; z < volume.size.z; ++z) {
    volume.slice_positions.push_back(volume.affine.At(0, 0, static_cast<double>(z)));
  }
  volume.log.push_back({{"step", "resample slices"},
                        {"order", 1},
                        {"step_mm", step_mm},
                        {"rows_added", margins.before_y + margins.after_y},
                        {"columns_added", margins.before_x + margins.after_x}});
  return absl::OkStatus();
}

constexpr char kSlicePayload[] = "patchbay/slice";

bool NeedsFloat(const DicomSeries& series, const Judgement& judgement) {
  return std::any_of(judgement.order.begin(), judgement.order.end(), [&](const SliceRef& slice) {
    const DicomFrame& frame = series.FrameOf(slice);
    return !IsWhole(frame.slope * judgement.suv_factor) ||
           !IsWhole(frame.intercept * judgement.suv_factor);
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
  /// `factor`: of every value after slope and intercept.
  SliceReader(const Folders& allowed, const DicomSeries& series, double factor, Volume& volume,
              const VolumeProgress& progress)
      : allowed_(allowed), series_(series), factor_(factor), volume_(volume), progress_(progress) {}

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
    const DicomFile& file = series_.files.front();
    if (!IsInHu(file.facts)) step["step"] = "stored values to arbitrary ones";
    if (file.is_inverted) step["inverted"] = true;
    if (file.frames.front().philips_scale != 0) step["by"] = "Philips scale slope (2005,100e)";
    if (file.pet) {
      step["step"] = "stored values to SUVbw";
      step["units"] = file.pet->units;
      step["decay_correction"] = file.pet->decay_correction;
      step["factor"] = factor_;
    }
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
    if (file.is_inverted) {
      for (std::int32_t& value : stored_) value = InvertedValue(file, value);
    }
    const DicomFrame& frame = series_.FrameOf(slice);
    if (volume_.dtype == DType::kInt16) {
      PutInt16(file, frame, reinterpret_cast<std::int16_t*>(volume_.voxels.data()) + begin);
    } else {
      auto* out = reinterpret_cast<float*>(volume_.voxels.data()) + begin;
      for (const std::int32_t v : stored_) {
        padding_ += IsPadding(file, v) ? 1 : 0;
        *out++ = static_cast<float>((frame.slope * v + frame.intercept) * factor_);
      }
    }
    return absl::OkStatus();
  }

  void PutInt16(const DicomFile& file, const DicomFrame& frame, std::int16_t* out) {
    using Limits = std::numeric_limits<std::int16_t>;
    const auto slope = static_cast<std::int64_t>(frame.slope * factor_),
               intercept = static_cast<std::int64_t>(frame.intercept * factor_);
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
  const double factor_;
  Volume& volume_;
  const VolumeProgress& progress_;
  std::vector<std::int32_t> stored_;
  std::unique_ptr<DicomPixels> opened_;
  std::size_t opened_file_ = 0;
  std::uint64_t padding_ = 0, clamped_ = 0;
  bool overflowed_ = false, sign_differs_ = false;
};

void Record(const RepairDone& done, Volume& volume) {
  Json step = {{"step", "repair"}, {"rule", NameOf(done.rule)}, {"what", done.what}};
  if (done.part > 0) step["part"] = done.part;
  volume.log.push_back(std::move(step));
  volume.warnings.push_back(StrCat("repaired (", NameOf(done.rule), "): ", done.what));
}

/// A file may be marked as CT and hold something else. Every CT has air or padding.
Status CheckPlausible(const DicomSeries& series, Volume& volume) {
  const bool has_voltage = series.files.front().has_tube_voltage;
  if (!IsInHu(volume.facts) || has_voltage || RangeOf(volume).min <= kLeastPlausibleHu) {
    return absl::OkStatus();
  }
  const std::string found =
      StrCat("the file says CT, but there is no tube voltage and no value below ",
             kLeastPlausibleHu, ": these are not Hounsfield units");
  if (!series.may_be_arbitrary) {
    return FailedPrecondition("read series: ", NameOf(Verdict::kNotCt), ": ", found, " (--repair ",
                              NameOf(Repair::kRescale), " repairs it)");
  }
  Record({Repair::kRescale, found}, volume);
  volume.facts["unit"] = "arbitrary";
  return absl::OkStatus();
}

/// The frames of reference, each once.
std::vector<std::string> FramesOfReference(const DicomSeries& series, const Judgement& judgement) {
  std::vector<std::string> frames;
  std::set<std::string> seen;
  for (const SliceRef& slice : judgement.order) {
    const std::string& frame = series.FileOf(slice).frame_of_reference;
    if (!frame.empty() && seen.insert(frame).second) frames.push_back(frame);
  }
  return frames;
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

std::string_view NameOf(GeometryPolicy policy) { return kPolicies.Of(policy); }

StatusOr<GeometryPolicy> GeometryPolicyFromName(std::string_view name) {
  if (const auto policy = kPolicies.Find(name)) return *policy;
  return InvalidArgument("geometry: '", name, "' is not a policy: refuse, resample or accept");
}

Status CheckGeometry(const Judgement& judgement, GeometryPolicy policy) {
  switch (judgement.verdict) {
    case Verdict::kUniform:
      return absl::OkStatus();
    case Verdict::kGap:
    case Verdict::kVariable:
    case Verdict::kTilted:
      if (policy != GeometryPolicy::kRefuse) return absl::OkStatus();
      [[fallthrough]];
    default:
      return FailedPrecondition("read series: ", NameOf(judgement.verdict), ": ",
                                judgement.ReasonAndWay());
  }
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
  if (series.files.front().modality == "PT") facts["unit"] = "SUVbw";
  return facts;
}

Affine AffineOf(const DicomSeries& series, const Judgement& j) {
  const DicomFrame &first = series.FrameOf(j.order.front()), &last = series.FrameOf(j.order.back());
  Affine affine;
  // Files round the cosines: normalise them, so that steps have the stated length.
  affine.x = *first.row * (first.column_step / Norm(*first.row));
  affine.y = *first.column * (first.row_step / Norm(*first.column));
  affine.z = (*last.position - *first.position) * (1.0 / static_cast<double>(j.order.size() - 1));
  affine.origin = *first.position;
  return affine;
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
  volume.identity = {file.patient, file.study, file.series, FramesOfReference(series, judgement)};
  volume.facts = FactsOf(series, judgement);
  for (const RepairDone& done : series.repairs) Record(done, volume);
  volume.log.push_back(OrderLog(judgement, policy));
  if (!judgement.warning.empty()) volume.warnings.push_back(judgement.warning);
  for (const SliceRef& slice : judgement.order) {
    volume.slice_positions.push_back(*series.FrameOf(slice).position);
  }
  for (const bool as_float : {NeedsFloat(series, judgement), true}) {
    volume.dtype = as_float ? DType::kFloat32 : DType::kInt16;
    PB_RETURN_IF_ERROR(AllocateVoxels(volume));
    SliceReader reader(allowed, series, judgement.suv_factor, volume, progress);
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
