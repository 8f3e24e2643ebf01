#include "workers/sources/volumes/dicom_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <set>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_pixels.h"
#include "workers/sources/volumes/series_repair.h"

namespace patchbay::workers {
namespace {

constexpr double kStepToleranceMm = 0.01, kStepTolerancePart = 0.01;
constexpr double kTiltDegrees = 0.1;
/// Tolerance of a slice's place across the stack, against the line through the first and the last,
/// in pixels.
constexpr double kShiftPixels = 0.1;
constexpr double kCosineTolerance = 1e-4, kSpacingTolerance = 1e-4;
/// The tolerance for a slice's corners against the grid of a series whose slices share no frame of
/// reference.
constexpr double kGridToleranceMm = 0.01;
/// Between the SUV factors of a series' files, whose numbers may be rounded each by itself.
constexpr double kFactorTolerance = 1e-6;
constexpr std::size_t kMaxNamed = 8;
/// Kinds of slices that are told apart in a series that is mixed.
constexpr std::size_t kMaxKinds = 1024;
/// The image, the enhanced and the legacy converted class of each modality that is read.
constexpr std::string_view kClasses[][4] = {
    {"CT", "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1",
     "1.2.840.10008.5.1.4.1.1.2.2"},
    {"MR", "1.2.840.10008.5.1.4.1.1.4", "1.2.840.10008.5.1.4.1.1.4.1",
     "1.2.840.10008.5.1.4.1.1.4.4"},
    {"PT", "1.2.840.10008.5.1.4.1.1.128", "1.2.840.10008.5.1.4.1.1.130",
     "1.2.840.10008.5.1.4.1.1.128.1"}};
constexpr std::string_view kScreenTypes[] = {"LOCALIZER", "SCOUT", "SCREEN SAVE", "DOSE_INFO",
                                             "DOSE"};

/// To three decimals, for texts.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

Judgement Say(Verdict verdict, std::string reason, std::vector<SliceRef> at_fault = {}) {
  Judgement judgement;
  judgement.verdict = verdict;
  judgement.reason = std::move(reason);
  judgement.at_fault = std::move(at_fault);
  return judgement;
}

/// A verdict that a rule may lift.
Judgement SayWith(Repair way, Verdict verdict, std::string reason) {
  Judgement judgement = Say(verdict, std::move(reason));
  judgement.ways = {std::string(NameOf(way))};
  return judgement;
}

/// Whether one of the values of an image type is `type`.
bool HasType(const std::string& image_type, std::string_view type) {
  const std::size_t at = image_type.find(type);
  const std::size_t end = at + type.size();
  if (at == std::string::npos || (at > 0 && image_type[at - 1] != '\\')) return false;
  return end == image_type.size() || image_type[end] == '\\';
}

/// The verdict on a frame before any geometry.
Judgement JudgeFrame(const DicomFile& file, const DicomFrame& frame) {
  if (IsScreen(frame)) {
    return SayWith(Repair::kLocalizer, Verdict::kNotAVolume,
                   "a localiser, screen capture or dose report");
  }
  if (HasType(frame.image_type, "MOSAIC")) {
    return Say(Verdict::kNotAVolume,
               "a mosaic (Siemens): its slices lie side by side in one image");
  }
  if (!frame.has_rescale && file.modality == "CT") {
    return SayWith(Repair::kRescale, Verdict::kNotCt,
                   "no rescale slope and intercept: values are not Hounsfield units");
  }
  if (!frame.has_rescale && file.modality == "PT") {
    return Say(Verdict::kNoSuv, "RescaleSlope (0028,1053) is missing: SUV cannot be computed");
  }
  if (frame.slope == 0) return Say(Verdict::kNotCt, "a rescale slope of 0");
  return Say(Verdict::kUniform, "");
}

/// The verdict on a file before any geometry; kUniform when nothing speaks against a volume.
Judgement JudgeFile(const DicomFile& file) {
  const auto classes = std::find_if(std::begin(kClasses), std::end(kClasses),
                                    [&file](const auto& of) { return of[0] == file.modality; });
  if (classes == std::end(kClasses)) {
    return Say(Verdict::kNotCt,
               StrCat("modality ", file.modality.empty() ? "missing" : "not CT, MR or PT"));
  }
  if (IsSecondaryCapture(file)) {
    return SayWith(Repair::kSecondaryCapture, Verdict::kNotAVolume,
                   "a secondary capture, which may show names");
  }
  if (!file.sop_class.empty() && std::find(std::begin(*classes) + 1, std::end(*classes),
                                           file.sop_class) == std::end(*classes)) {
    return Say(Verdict::kNotCt, StrCat("not of a ", file.modality, " image class"));
  }
  if (!file.burned_in.empty() && file.burned_in != "NO") {
    return SayWith(Repair::kBurnedIn, Verdict::kNotAVolume,
                   "burned-in annotation, which may show names");
  }
  for (const DicomFrame& frame : file.frames) {
    if (frame.is_left_out) continue;
    Judgement judgement = JudgeFrame(file, frame);
    if (judgement.verdict != Verdict::kUniform) return judgement;
  }
  if (file.modality == "CT" && !file.rescale_type.empty() && file.rescale_type != "HU") {
    return SayWith(Repair::kRescale, Verdict::kNotCt, "a rescale type that is not HU");
  }
  const Status pixels = CheckDicomPixelFormat(file);
  if (pixels.ok()) return Say(Verdict::kUniform, "");
  Judgement judgement = Say(Verdict::kNotAVolume, std::string(MessageOf(pixels)));
  if (file.photometric == "MONOCHROME1")
    judgement.ways = {std::string(NameOf(Repair::kMonochrome1))};
  return judgement;
}

/// The least value that the bits of a frame can stand for.
double LeastOf(const DicomFile& file, const DicomFrame& frame) {
  const double all = std::ldexp(1.0, file.bits_stored), half = all / 2;
  const double least = file.is_signed ? -half : 0, most = file.is_signed ? half - 1 : all - 1;
  return std::min(frame.slope * least, frame.slope * most) + frame.intercept;
}

bool HasGeometry(const DicomFrame& frame) {
  if (!frame.position || !frame.row || !frame.column) return false;
  if (!(frame.row_step > 0 && frame.column_step > 0)) return false;
  const bool are_unit =
      std::abs(Norm(*frame.row) - 1) < 1e-2 && std::abs(Norm(*frame.column) - 1) < 1e-2;
  return are_unit && std::abs(Dot(*frame.row, *frame.column)) < 1e-2;
}

bool IsNear(double a, double b) { return std::abs(a - b) <= kSpacingTolerance * std::abs(b); }

constexpr std::string_view kFrameDiffers = "frame of reference",
                           kKernelDiffers = "reconstruction kernel";

/// The first property of a stack in which two slices differ; "" without one. The frame of reference
/// is not compared where each slice has its own, or all are taken for one.
std::string DifferenceOf(const DicomSeries& series, const SliceRef& a, const SliceRef& b,
                         bool each_has_its_frame) {
  const bool compares_frames = !each_has_its_frame && !series.has_one_frame;
  const DicomFile &f = series.FileOf(a), &g = series.FileOf(b);
  const DicomFrame &s = series.FrameOf(a), &t = series.FrameOf(b);
  if (f.modality != g.modality) return "modality";
  if (f.rows != g.rows || f.columns != g.columns) return "size";
  if (!IsNear(s.row_step, t.row_step) || !IsNear(s.column_step, t.column_step)) {
    return "pixel spacing";
  }
  if (Dot(*s.row, *t.row) < 1 - kCosineTolerance ||
      Dot(*s.column, *t.column) < 1 - kCosineTolerance) {
    return "orientation";
  }
  if (compares_frames && f.frame_of_reference != g.frame_of_reference) {
    return std::string(kFrameDiffers);
  }
  if (f.kernel != g.kernel) return std::string(kKernelDiffers);
  return "";
}

/// Whether every slice has its own frame of reference, as in some archives: they are then
/// meaningless.
bool EachHasItsFrame(const DicomSeries& series, const std::vector<SliceRef>& slices) {
  std::set<std::string> seen;
  return std::all_of(slices.begin(), slices.end(), [&](const SliceRef& slice) {
    const std::string& frame = series.FileOf(slice).frame_of_reference;
    return !frame.empty() && seen.insert(frame).second;
  });
}

/// The slices that are not of the commonest kind.
struct OddSlices {
  std::vector<SliceRef> slices;
  std::vector<std::pair<std::string, std::size_t>> differences;  ///< and how many slices have each
};

OddSlices FindOddSlices(const DicomSeries& series, const std::vector<SliceRef>& slices,
                        bool each_has_its_frame) {
  const auto difference = [&](const SliceRef& a, const SliceRef& b) {
    return DifferenceOf(series, a, b, each_has_its_frame);
  };
  std::vector<std::vector<SliceRef>> kinds;
  std::vector<SliceRef> unlike;  // all of these, once there are kMaxKinds
  for (const SliceRef& slice : slices) {
    const auto own = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      return difference(slice, kind.front()).empty();
    });
    if (own != kinds.end()) {
      own->push_back(slice);
    } else if (kinds.size() < kMaxKinds) {
      kinds.push_back({slice});
    } else {
      unlike.push_back(slice);
    }
  }
  std::stable_sort(kinds.begin(), kinds.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  OddSlices odd;
  for (std::size_t i = 1; i < kinds.size(); ++i) {
    odd.slices.insert(odd.slices.end(), kinds[i].begin(), kinds[i].end());
  }
  odd.slices.insert(odd.slices.end(), unlike.begin(), unlike.end());
  for (const SliceRef& slice : odd.slices) {
    const std::string name = difference(slice, kinds.front().front());
    const auto counted = std::find_if(odd.differences.begin(), odd.differences.end(),
                                      [&](const auto& one) { return one.first == name; });
    if (counted != odd.differences.end()) {
      ++counted->second;
    } else {
      odd.differences.emplace_back(name, 1);
    }
  }
  return odd;
}

/// kMixed when the slices differ; slices that are not of the commonest kind are at fault.
Judgement JudgeAlike(const DicomSeries& series, const std::vector<SliceRef>& slices,
                     bool each_has_its_frame) {
  OddSlices odd = FindOddSlices(series, slices, each_has_its_frame);
  if (odd.slices.empty()) return Say(Verdict::kUniform, "");
  std::string reason, rules;
  bool has_way = true;
  for (const auto& [difference, count] : odd.differences) {
    const bool is_frame = difference == kFrameDiffers;
    has_way = has_way && (is_frame || difference == kKernelDiffers);
    rules += StrCat(rules.empty() ? "" : ",",
                    NameOf(is_frame ? Repair::kFrameOfReference : Repair::kKernel));
    reason += reason.empty() ? StrCat(count, " of ", slices.size(), " slices ",
                                      count == 1 ? "differs" : "differ", " in ", difference)
                             : StrCat(", ", count, " in ", difference);
  }
  Judgement judgement = Say(Verdict::kMixed, std::move(reason), std::move(odd.slices));
  if (has_way) judgement.ways = {std::move(rules)};
  return judgement;
}

Vec3 NormalOf(const DicomFrame& frame) {
  const Vec3 normal = Cross(*frame.row, *frame.column);
  return normal * (1 / Norm(normal));
}

/// Sorts by the place along the normal; equal places keep the order of names.
void SortSlices(const DicomSeries& series, const std::vector<SliceRef>& slices, Judgement& j) {
  const Vec3 normal = NormalOf(series.FrameOf(slices.front()));
  std::vector<std::pair<double, SliceRef>> placed;
  for (const SliceRef& slice : slices) {
    placed.emplace_back(Dot(*series.FrameOf(slice).position, normal), slice);
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, slice] : placed) {
    j.places_mm.push_back(place);
    j.order.push_back(slice);
  }
  std::vector<double> steps;
  for (std::size_t i = 1; i < placed.size(); ++i) {
    const double step = j.places_mm[i] - j.places_mm[i - 1];
    if (step > kStepToleranceMm) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  // The lower of the middle ones: of few slices with a gap, the step rather than the gap.
  j.step_mm = steps.empty() ? 0 : steps[(steps.size() - 1) / 2];
  j.tolerance_mm = std::max(kStepToleranceMm, kStepTolerancePart * j.step_mm);
}

bool FindDuplicates(Judgement& j) {
  std::size_t pairs = 0;
  for (std::size_t i = 1; i < j.order.size(); ++i) {
    if (j.places_mm[i] - j.places_mm[i - 1] > std::min(j.tolerance_mm, 0.1)) continue;
    ++pairs;
    j.at_fault.push_back(j.order[i]);
  }
  if (pairs == 0) return false;
  const std::size_t places = j.order.size() - pairs;
  j.verdict = Verdict::kDuplicate;
  j.ways = {std::string(NameOf(Repair::kCopies))};
  j.reason = StrCat(j.order.size(), " slices at ", Counted(places, "place"));
  if (places > 1 && j.order.size() % places == 0 && j.order.size() / places > 1) {
    j.reason += StrCat(", ", j.order.size() / places,
                       " at each: a copy of every slice, or a series over time");
  }
  return true;
}

/// The angle between the normal and the way from the first slice to the last; slices off that way
/// make the series variable.
bool FindTilt(const DicomSeries& series, Judgement& j) {
  const DicomFrame &first = series.FrameOf(j.order.front()), &last = series.FrameOf(j.order.back());
  const Vec3 normal = NormalOf(first), way = *last.position - *first.position;
  const double height = Dot(way, normal), along_row = Dot(way, *first.row),
               along_column = Dot(way, *first.column);
  for (std::size_t i = 0; i < j.order.size(); ++i) {
    const Vec3 off = *series.FrameOf(j.order[i]).position - *first.position -
                     way * ((j.places_mm[i] - j.places_mm[0]) / height);
    const double limit = kShiftPixels * std::min(first.row_step, first.column_step);
    if (std::abs(Dot(off, *first.row)) <= limit && std::abs(Dot(off, *first.column)) <= limit) {
      continue;
    }
    j.at_fault.push_back(j.order[i]);
  }
  if (!j.at_fault.empty()) {
    j.verdict = Verdict::kVariable;
    j.reason =
        StrCat(Counted(j.at_fault.size(), "slice is", "slices are"), " shifted against the others");
    return true;
  }
  const double across = std::hypot(along_row, along_column);
  const double sign = std::abs(along_column) >= std::abs(along_row) ? along_column : along_row;
  j.tilt_deg = std::copysign(std::atan2(across, height), sign) * 180 / std::numbers::pi;
  if (std::abs(j.tilt_deg) < kTiltDegrees) return false;
  j.verdict = Verdict::kTilted;
  j.reason = StrCat("slices shifted against one another by ", Rounded(j.tilt_deg),
                    " degrees (a gantry tilt)");
  return true;
}

void JudgeSteps(Judgement& j) {
  bool are_gaps = true;
  std::string missing, steps;
  for (std::size_t i = 1; i < j.order.size(); ++i) {
    const double step = j.places_mm[i] - j.places_mm[i - 1];
    j.deviation_mm = std::max(j.deviation_mm, std::abs(step - j.step_mm));
    if (std::abs(step - j.step_mm) <= j.tolerance_mm) continue;
    const double times = std::round(step / j.step_mm);
    are_gaps &= times >= 2 && std::abs(step - times * j.step_mm) <= times * j.tolerance_mm;
    j.at_fault.push_back(j.order[i]);
    if (j.at_fault.size() > kMaxNamed) continue;
    steps += StrCat(steps.empty() ? "" : ", ", Rounded(step), " at ", Rounded(j.places_mm[i]));
    if (times >= 2) {
      missing += StrCat(missing.empty() ? "" : ", ", static_cast<std::int64_t>(times) - 1,
                        " before ", Rounded(j.places_mm[i]));
    }
  }
  if (j.at_fault.empty()) {
    j.verdict = j.verdict == Verdict::kTilted ? Verdict::kTilted : Verdict::kUniform;
    return;
  }
  const std::string found =
      are_gaps ? StrCat("slices missing: ", missing, " mm along the normal")
               : StrCat("steps differ from ", Rounded(j.step_mm), " mm: ", steps, " mm");
  if (j.verdict == Verdict::kTilted) {
    j.reason += StrCat("; ", found);
  } else {
    j.verdict = are_gaps ? Verdict::kGap : Verdict::kVariable;
    j.reason = found;
  }
}

/// A corner of a slice: `right` and `down` are 0 or 1.
Vec3 CornerOf(const DicomSeries& series, const SliceRef& slice, int right, int down) {
  const DicomFile& file = series.FileOf(slice);
  const DicomFrame& frame = series.FrameOf(slice);
  return *frame.position +
         *frame.row * (frame.column_step * static_cast<double>(right * (file.columns - 1))) +
         *frame.column * (frame.row_step * static_cast<double>(down * (file.rows - 1)));
}

/// The slices of which a corner is not where the grid through the first and the last has it,
/// counting the places of missing slices.
std::vector<SliceRef> OffTheGrid(const DicomSeries& series, const Judgement& j) {
  std::vector<double> steps = {0};
  for (std::size_t i = 1; i < j.order.size(); ++i) {
    const double times = std::round((j.places_mm[i] - j.places_mm[i - 1]) / j.step_mm);
    steps.push_back(steps.back() + std::max(times, 1.0));
  }
  const SliceRef &first = j.order.front(), &last = j.order.back();
  std::vector<SliceRef> off;
  for (std::size_t i = 0; i < j.order.size(); ++i) {
    const double part = steps[i] / steps.back();
    double farthest = 0;
    for (const auto& [right, down] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}}) {
      const Vec3 start = CornerOf(series, first, right, down);
      const Vec3 way = *series.FrameOf(last).position - *series.FrameOf(first).position;
      const Vec3 found = CornerOf(series, j.order[i], right, down);
      farthest = std::max(farthest, Norm(found - start - way * part));
    }
    if (farthest > kGridToleranceMm) off.push_back(j.order[i]);
  }
  return off;
}

/// Slices without a common frame of reference are accepted only on a common grid, which the reason
/// states for any verdict; otherwise they are mixed.
void JudgeFrames(const DicomSeries& series, Judgement& j) {
  std::vector<SliceRef> off = OffTheGrid(series, j);
  const std::string own = "every slice has a frame of reference of its own";
  if (!off.empty()) {
    j.verdict = Verdict::kMixed;
    j.reason = StrCat(own, ", and ", off.size(), " of ", j.order.size(), " slices ",
                      off.size() == 1 ? "lies" : "lie", " more than ", kGridToleranceMm,
                      " mm off the grid of the others");
    j.at_fault = std::move(off);
    j.ways = {std::string(NameOf(Repair::kFrameOfReference))};
    return;
  }
  j.warning = StrCat(own, ", all on one grid to ", kGridToleranceMm, " mm");
  j.reason += StrCat(j.reason.empty() ? "" : "; ", j.warning);
}

Judgement JudgeFiles(const DicomSeries& series, std::vector<SliceRef>& slices) {
  Judgement worst = Say(Verdict::kUniform, "");
  bool has_other = false;
  for (std::size_t f = 0; f < series.files.size(); ++f) {
    Judgement own = JudgeFile(series.files[f]);
    has_other |= own.verdict != Verdict::kUniform;
    if (own.verdict != Verdict::kUniform && worst.verdict == Verdict::kUniform) {
      worst.verdict = own.verdict;
      worst.reason = std::move(own.reason);
      worst.ways = std::move(own.ways);
    }
    if (own.verdict != Verdict::kUniform) worst.at_fault.push_back({f, 0});
    for (std::size_t i = 0; i < series.files[f].frames.size(); ++i) {
      if (!series.files[f].frames[i].is_left_out) slices.push_back({f, i});
    }
  }
  if (has_other && worst.at_fault.size() < series.files.size()) {
    worst.verdict = Verdict::kMixed;
    worst.reason =
        StrCat(worst.at_fault.size(), " of ", series.files.size(), " files: ", worst.reason);
  }
  return worst;
}

/// kNoSuv, or the factor that makes SUV of the values of all files.
Judgement JudgeSuv(const DicomSeries& series, const std::vector<SliceRef>& slices) {
  std::optional<double> acquired;
  for (const DicomFile& file : series.files) {
    const std::optional<double> own = file.pet ? file.pet->acquired : std::nullopt;
    if (own && (!acquired || *own < *acquired)) acquired = own;
  }
  Judgement judgement = Say(Verdict::kUniform, "");
  for (const DicomFile& file : series.files) {
    const auto factor = SuvFactor(file.pet.value_or(PetAttributes{}), acquired);
    if (!factor.ok()) return Say(Verdict::kNoSuv, std::string(MessageOf(factor.status())), slices);
    if (&file == &series.files.front()) judgement.suv_factor = *factor;
    if (std::abs(*factor - judgement.suv_factor) > kFactorTolerance * *factor) {
      return Say(Verdict::kNoSuv, "its files differ in what SUV is computed from", slices);
    }
  }
  const std::string& corrections = series.files.front().pet->corrections;
  if (!corrections.empty() && corrections.find("ATTN") == std::string::npos) {
    judgement.warning = "not corrected for attenuation (0028,0051)";
  }
  return judgement;
}

Judgement JudgeGeometry(const DicomSeries& series, const std::vector<SliceRef>& slices) {
  Judgement judgement = Say(Verdict::kNotAVolume, "");
  for (const SliceRef& slice : slices) {
    if (!HasGeometry(series.FrameOf(slice))) judgement.at_fault.push_back(slice);
  }
  if (!judgement.at_fault.empty()) {
    return Say(Verdict::kNotAVolume,
               StrCat(Counted(judgement.at_fault.size(), "slice"),
                      " without a position, orthonormal axes or pixel spacing"),
               judgement.at_fault);
  }
  if (slices.size() < 2) {
    return Say(Verdict::kNotAVolume, "a single slice; for a slice of a series, name the folder",
               slices);
  }
  const bool each_has_its_frame = EachHasItsFrame(series, slices);
  judgement = JudgeAlike(series, slices, each_has_its_frame);
  if (judgement.verdict != Verdict::kUniform) return judgement;
  SortSlices(series, slices, judgement);
  if (FindDuplicates(judgement)) return judgement;
  const bool is_shifted = FindTilt(series, judgement) && judgement.verdict == Verdict::kVariable;
  if (!is_shifted) JudgeSteps(judgement);
  if (each_has_its_frame && !series.has_one_frame) JudgeFrames(series, judgement);
  return judgement;
}

}  // namespace

std::string_view NameOf(Verdict verdict) {
  constexpr std::array<std::string_view, 9> kNames = {"uniform",      "gap",       "variable",
                                                      "tilted",       "duplicate", "mixed",
                                                      "not-a-volume", "not-ct",    "no-suv"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string Judgement::WayThrough() const {
  if (!ways.empty()) return StrCat("--repair ", StrJoin(ways, " or "), " repairs it");
  const bool is_of_geometry =
      verdict == Verdict::kGap || verdict == Verdict::kVariable || verdict == Verdict::kTilted;
  return is_of_geometry ? "--geometry resample or accept ingests it" : "";
}

std::string Judgement::ReasonAndWay() const {
  const std::string way = WayThrough();
  return way.empty() ? reason : StrCat(reason, " (", way, ")");
}

bool IsScreen(const DicomFrame& frame) {
  return std::any_of(std::begin(kScreenTypes), std::end(kScreenTypes),
                     [&](std::string_view type) { return HasType(frame.image_type, type); });
}

bool IsSecondaryCapture(const DicomFile& file) {
  return file.sop_class.starts_with("1.2.840.10008.5.1.4.1.1.7");
}

bool CanBeHounsfield(const DicomSeries& series) {
  if (series.files.front().has_tube_voltage) return true;
  return std::any_of(series.files.begin(), series.files.end(), [](const DicomFile& file) {
    return std::any_of(file.frames.begin(), file.frames.end(), [&](const DicomFrame& frame) {
      return LeastOf(file, frame) <= kLeastPlausibleHu;
    });
  });
}

std::string DicomSeries::NameOf(const SliceRef& slice, const std::string& folder) const {
  const DicomFile& file = FileOf(slice);
  const std::filesystem::path path(file.path);
  const std::filesystem::path below = path.lexically_relative(folder);
  const bool is_below = !below.empty() && *below.begin() != ".." && *below.begin() != ".";
  const std::string name = (is_below ? below : path.filename()).string();
  return file.frames.size() > 1 ? StrCat(name, " frame ", slice.frame) : name;
}

std::vector<DicomSeries> GroupSeries(std::vector<DicomFile> files) {
  std::map<std::string, DicomSeries> groups;
  std::sort(files.begin(), files.end(),
            [](const DicomFile& a, const DicomFile& b) { return a.path < b.path; });
  for (DicomFile& file : files) {
    if (!file.HasPixels()) continue;
    // Without a series UID, a folder is a series.
    const std::string folder = std::filesystem::path(file.path).parent_path().string();
    DicomSeries& series = groups[file.series.empty() ? folder : file.series];
    series.uid = file.series;
    series.files.push_back(std::move(file));
  }
  std::vector<DicomSeries> all;
  for (auto& [uid, series] : groups) all.push_back(std::move(series));
  return all;
}

Judgement JudgeSlices(const DicomSeries& series) {
  std::vector<SliceRef> slices;
  Judgement judgement = JudgeFiles(series, slices);
  if (judgement.verdict != Verdict::kUniform) return judgement;
  const std::string& modality = series.files.front().modality;
  if (modality == "CT" && !CanBeHounsfield(series)) {
    Judgement none = SayWith(Repair::kRescale, Verdict::kNotCt,
                             StrCat("no tube voltage, and no stored value that is ",
                                    kLeastPlausibleHu, " or less: not Hounsfield units"));
    none.at_fault = std::move(slices);
    return none;
  }
  if (modality != "PT") return JudgeGeometry(series, slices);
  const Judgement suv = JudgeSuv(series, slices);
  if (suv.verdict != Verdict::kUniform) return suv;
  judgement = JudgeGeometry(series, slices);
  judgement.suv_factor = suv.suv_factor;
  if (judgement.warning.empty()) judgement.warning = suv.warning;
  return judgement;
}

Judgement Judge(const DicomSeries& series) {
  Judgement judgement = JudgeSlices(series);
  const bool is_ambiguous =
      judgement.verdict == Verdict::kDuplicate || judgement.verdict == Verdict::kMixed;
  if (is_ambiguous && !SplitSeries(series).values.empty()) {
    judgement.ways.emplace_back(NameOf(Repair::kSplit));
  }
  return judgement;
}

std::string ToString(const DicomSeries& series, const Judgement& judgement) {
  std::string text = std::string(NameOf(judgement.verdict));
  if (!judgement.reason.empty()) text += StrCat(": ", judgement.ReasonAndWay());
  if (judgement.at_fault.empty()) return text;
  text += " (";
  for (std::size_t i = 0; i < std::min(judgement.at_fault.size(), kMaxNamed); ++i) {
    text += StrCat(i == 0 ? "" : ", ", series.NameOf(judgement.at_fault[i]));
  }
  if (judgement.at_fault.size() > kMaxNamed) {
    text += StrCat(" and ", judgement.at_fault.size() - kMaxNamed, " more");
  }
  return text + ")";
}

}  // namespace patchbay::workers
