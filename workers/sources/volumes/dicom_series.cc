#include "workers/sources/volumes/dicom_series.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>

#include "runtime/base/counted.h"
#include "runtime/base/strings.h"

namespace patchbay::workers {
namespace {

constexpr double kStepToleranceMm = 0.01, kStepTolerancePart = 0.01;
constexpr double kTiltDegrees = 0.1;
/// Of a slice's place across the stack, against the line through the first and the last, in pixels.
constexpr double kShiftPixels = 0.1;
constexpr double kCosineTolerance = 1e-4, kSpacingTolerance = 1e-4;
constexpr std::size_t kMaxNamed = 8;
constexpr std::string_view kCtClasses[] = {
    "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1", "1.2.840.10008.5.1.4.1.1.2.2"};
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

bool IsScreen(const std::string& image_type) {
  for (const std::string_view type : kScreenTypes) {
    const std::size_t at = image_type.find(type);
    const std::size_t end = at + type.size();
    if (at == std::string::npos || (at > 0 && image_type[at - 1] != '\\')) continue;
    if (end == image_type.size() || image_type[end] == '\\') return true;
  }
  return false;
}

/// What a file is, before any geometry; kUniform when nothing speaks against a volume of CT.
Judgement JudgeFile(const DicomFile& file) {
  if (file.modality != "CT") {
    return Say(Verdict::kNotCt, StrCat("modality ", file.modality.empty() ? "not said" : "not CT"));
  }
  if (file.sop_class.starts_with("1.2.840.10008.5.1.4.1.1.7")) {
    return Say(Verdict::kNotAVolume, "a secondary capture, which may show names");
  }
  if (!file.sop_class.empty() && std::find(std::begin(kCtClasses), std::end(kCtClasses),
                                           file.sop_class) == std::end(kCtClasses)) {
    return Say(Verdict::kNotCt, "not of a CT image class");
  }
  if (!file.burned_in.empty() && file.burned_in != "NO") {
    return Say(Verdict::kNotAVolume, "burned-in annotation, which may show names");
  }
  for (const DicomFrame& frame : file.frames) {
    if (IsScreen(frame.image_type)) {
      return Say(Verdict::kNotAVolume, "a localiser, screen capture or dose report");
    }
    if (!frame.has_rescale) {
      return Say(Verdict::kNotCt,
                 "no rescale slope and intercept: values are not Hounsfield units");
    }
    if (frame.slope == 0) return Say(Verdict::kNotCt, "a rescale slope of 0");
  }
  if (!file.rescale_type.empty() && file.rescale_type != "HU") {
    return Say(Verdict::kNotCt, "a rescale type that is not HU");
  }
  return Say(Verdict::kUniform, "");
}

bool HasGeometry(const DicomFrame& frame) {
  if (!frame.position || !frame.row || !frame.column) return false;
  if (!(frame.row_step > 0 && frame.column_step > 0)) return false;
  const bool are_unit =
      std::abs(Norm(*frame.row) - 1) < 1e-2 && std::abs(Norm(*frame.column) - 1) < 1e-2;
  return are_unit && std::abs(Dot(*frame.row, *frame.column)) < 1e-2;
}

bool IsNear(double a, double b) { return std::abs(a - b) <= kSpacingTolerance * std::abs(b); }

/// What two slices must share to be of one stack; "" when they do.
std::string DifferenceOf(const DicomSeries& series, const SliceRef& a, const SliceRef& b) {
  const DicomFile &f = series.FileOf(a), &g = series.FileOf(b);
  const DicomFrame &s = series.FrameOf(a), &t = series.FrameOf(b);
  if (f.rows != g.rows || f.columns != g.columns) return "size";
  if (!IsNear(s.row_step, t.row_step) || !IsNear(s.column_step, t.column_step)) {
    return "pixel spacing";
  }
  if (Dot(*s.row, *t.row) < 1 - kCosineTolerance ||
      Dot(*s.column, *t.column) < 1 - kCosineTolerance) {
    return "orientation";
  }
  if (f.frame_of_reference != g.frame_of_reference) return "frame of reference";
  if (f.kernel != g.kernel) return "reconstruction kernel";
  return "";
}

/// kMixed when the slices are not alike; the smaller groups are at fault.
Judgement JudgeAlike(const DicomSeries& series, const std::vector<SliceRef>& slices) {
  std::vector<std::vector<SliceRef>> groups;
  std::string difference;
  for (const SliceRef& slice : slices) {
    const auto own = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      const std::string differs = DifferenceOf(series, slice, group.front());
      if (!differs.empty() && difference.empty()) difference = differs;
      return differs.empty();
    });
    if (own != groups.end()) {
      own->push_back(slice);
    } else if (groups.size() < 64) {
      groups.push_back({slice});
    }
  }
  if (groups.size() == 1) return Say(Verdict::kUniform, "");
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<SliceRef> others;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    others.insert(others.end(), groups[i].begin(), groups[i].end());
  }
  return Say(Verdict::kMixed,
             StrCat(others.size(), " of ", slices.size(), " slices differ in ", difference),
             std::move(others));
}

Vec3 NormalOf(const DicomFrame& frame) {
  const Vec3 normal = Cross(*frame.row, *frame.column);
  return normal * (1 / Norm(normal));
}

/// Sorts by the place along the normal; equal places keep the order of names.
void Order(const DicomSeries& series, const std::vector<SliceRef>& slices, Judgement& j) {
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

Judgement JudgeFiles(const DicomSeries& series, std::vector<SliceRef>& slices) {
  Judgement worst = Say(Verdict::kUniform, "");
  bool has_other = false;
  for (std::size_t f = 0; f < series.files.size(); ++f) {
    Judgement own = JudgeFile(series.files[f]);
    has_other |= own.verdict != Verdict::kUniform;
    if (own.verdict != Verdict::kUniform && worst.verdict == Verdict::kUniform) {
      worst.verdict = own.verdict;
      worst.reason = std::move(own.reason);
    }
    if (own.verdict != Verdict::kUniform) worst.at_fault.push_back({f, 0});
    for (std::size_t i = 0; i < series.files[f].frames.size(); ++i) slices.push_back({f, i});
  }
  if (has_other && worst.at_fault.size() < series.files.size()) {
    worst.verdict = Verdict::kMixed;
    worst.reason =
        StrCat(worst.at_fault.size(), " of ", series.files.size(), " files: ", worst.reason);
  }
  return worst;
}

}  // namespace

std::string_view NameOf(Verdict verdict) {
  constexpr std::array<std::string_view, 8> kNames = {
      "uniform", "gap", "variable", "tilted", "duplicate", "mixed", "not-a-volume", "not-ct"};
  return kNames[static_cast<std::size_t>(verdict)];
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

Judgement Judge(const DicomSeries& series) {
  std::vector<SliceRef> slices;
  Judgement judgement = JudgeFiles(series, slices);
  if (judgement.verdict != Verdict::kUniform) return judgement;
  for (const SliceRef& slice : slices) {
    if (!HasGeometry(series.FrameOf(slice))) judgement.at_fault.push_back(slice);
  }
  if (!judgement.at_fault.empty()) {
    return Say(Verdict::kNotAVolume,
               StrCat(Counted(judgement.at_fault.size(), "slice"),
                      " without a position, orthonormal axes or pixel spacing"),
               judgement.at_fault);
  }
  if (slices.size() < 2) return Say(Verdict::kNotAVolume, "a single slice", slices);
  judgement = JudgeAlike(series, slices);
  if (judgement.verdict != Verdict::kUniform) return judgement;
  Order(series, slices, judgement);
  if (FindDuplicates(judgement)) return judgement;
  const bool is_shifted = FindTilt(series, judgement) && judgement.verdict == Verdict::kVariable;
  if (!is_shifted) JudgeSteps(judgement);
  return judgement;
}

std::string ToString(const DicomSeries& series, const Judgement& judgement) {
  std::string text = std::string(NameOf(judgement.verdict));
  if (!judgement.reason.empty()) text += StrCat(": ", judgement.reason);
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
