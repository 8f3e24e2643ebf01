#include "workers/sources/volumes/series_repair.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "workers/sources/volumes/dicom_library.h"
#include "workers/sources/volumes/dicom_pixels.h"

namespace patchbay::workers {
namespace {

constexpr double kSamePlaceMm = 0.01;
constexpr std::size_t kMaxParts = 1024;

using TestSlice = std::function<bool(const DicomFile&, const DicomFrame&)>;

std::size_t CountSlices(const DicomSeries& series, const TestSlice& test) {
  std::size_t count = 0;
  for (const DicomFile& file : series.files) {
    for (const DicomFrame& frame : file.frames) {
      count += !frame.is_left_out && test(file, frame) ? 1 : 0;
    }
  }
  return count;
}

/// Files without a slice go, so that the rest is a series by itself.
void RemoveEmptyFiles(DicomSeries& series) {
  std::erase_if(series.files, [](const DicomFile& file) {
    return std::all_of(file.frames.begin(), file.frames.end(),
                       [](const DicomFrame& frame) { return frame.is_left_out; });
  });
}

void LeaveOut(DicomSeries& series, const TestSlice& test) {
  for (DicomFile& file : series.files) {
    for (DicomFrame& frame : file.frames) {
      frame.is_left_out = frame.is_left_out || test(file, frame);
    }
  }
  RemoveEmptyFiles(series);
}

bool IsOfCt(const DicomSeries& series) {
  return std::all_of(series.files.begin(), series.files.end(),
                     [](const DicomFile& file) { return file.modality == "CT"; });
}

/// Secondary captures are taken for screens, unless they are consented to.
void LeaveOutScreens(DicomSeries& series, const Repairs& rules) {
  const bool takes_captures = rules.contains(Repair::kSecondaryCapture);
  const auto is_screen = [&](const DicomFile& file, const DicomFrame& frame) {
    return IsScreen(frame) || (IsSecondaryCapture(file) && !takes_captures);
  };
  const std::size_t screens = CountSlices(series, is_screen);
  const std::size_t all = CountSlices(series, [](const auto&, const auto&) { return true; });
  if (screens == 0 || screens == all) return;
  LeaveOut(series, is_screen);
  series.repairs.push_back(
      {Repair::kLocalizer, StrCat(Counted(screens, "image"), " left out: localisers, screen ",
                                  "captures or dose reports")});
}

/// Changes the files that `change` returns true for, and records it.
template <typename Change>
void ChangeFiles(DicomSeries& series, Repair rule, std::string_view what, Change change) {
  std::size_t changed = 0;
  for (DicomFile& file : series.files) changed += change(file) ? 1 : 0;
  if (changed == 0) return;
  const std::size_t files = series.files.size();
  series.repairs.push_back(
      {rule, changed == files ? std::string(what)
                              : StrCat(changed, " of ", Counted(files, "file"), ": ", what)});
}

bool Invert(DicomFile& file) {
  if (file.photometric != "MONOCHROME1" || file.bits_stored < 1 || file.bits_stored > 16) {
    return false;
  }
  file.photometric = "MONOCHROME2";
  file.is_inverted = true;
  for (auto* padding : {&file.padding, &file.padding_limit}) {
    if (*padding) *padding = InvertedValue(file, **padding);
  }
  if (file.modality == "CT") file.facts["unit"] = "arbitrary";
  return true;
}

/// CT whose values are no Hounsfield units by its headers.
void TakeAsArbitrary(DicomSeries& series) {
  series.may_be_arbitrary = IsOfCt(series);
  if (!series.may_be_arbitrary) return;
  const bool has_others =
      std::any_of(series.files.begin(), series.files.end(), [](const DicomFile& file) {
        return !file.rescale_type.empty() && file.rescale_type != "HU";
      });
  const std::size_t plain = CountSlices(
      series, [](const DicomFile&, const DicomFrame& frame) { return !frame.has_rescale; });
  if (!has_others && plain == 0 && CanBeHounsfield(series)) return;
  for (DicomFile& file : series.files) {
    file.rescale_type.clear();
    file.has_tube_voltage = true;  // no value tells whether it is CT
    file.facts["unit"] = "arbitrary";
    for (DicomFrame& frame : file.frames) frame.has_rescale = true;
  }
  const std::string_view why = has_others  ? "a rescale type that is not HU"
                               : plain > 0 ? "no rescale slope and intercept"
                                           : "no tube voltage, and no value of air";
  series.repairs.push_back({Repair::kRescale, StrCat("values in arbitrary units: ", why)});
}

/// Finds slices that have the place, the orientation and the pixels of another.
class CopyFinder {
 public:
  CopyFinder(const Folders& allowed, const VolumeProgress& progress)
      : allowed_(allowed), progress_(progress) {}

  /// Marks copies as left out, and returns how many there are.
  StatusOr<std::size_t> Mark(DicomSeries& series) {
    std::vector<Placed> slices;
    for (DicomFile& file : series.files) {
      for (DicomFrame& frame : file.frames) {
        if (frame.is_left_out || !frame.position || !frame.row || !frame.column) continue;
        slices.push_back({Dot(*frame.position, Cross(*frame.row, *frame.column)), &file, &frame});
      }
    }
    std::stable_sort(slices.begin(), slices.end(),
                     [](const Placed& a, const Placed& b) { return a.at < b.at; });
    std::size_t copies = 0;
    for (std::size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
      for (end = begin + 1;
           end < slices.size() && slices[end].at - slices[begin].at <= kSamePlaceMm;) {
        ++end;
      }
      if (end - begin < 2) continue;
      PB_ASSIGN_OR_RETURN(const std::size_t found,
                          MarkAmong(std::span(slices).subspan(begin, end - begin)));
      copies += found;
    }
    return copies;
  }

 private:
  struct Placed {
    double at;  ///< along its normal
    const DicomFile* file;
    DicomFrame* frame;
  };

  static bool IsSamePlace(const DicomFrame& a, const DicomFrame& b) {
    return Norm(*a.position - *b.position) <= kSamePlaceMm && Norm(*a.row - *b.row) <= 1e-4 &&
           Norm(*a.column - *b.column) <= 1e-4 && a.row_step == b.row_step &&
           a.column_step == b.column_step;
  }

  StatusOr<std::size_t> MarkAmong(std::span<const Placed> slices) {
    std::vector<std::pair<Digest, const DicomFrame*>> kept;
    for (const Placed& slice : slices) {
      if (progress_) PB_RETURN_IF_ERROR(progress_());
      PB_ASSIGN_OR_RETURN(const Digest digest, DigestOf(*slice.file, *slice.frame));
      slice.frame->is_left_out = std::any_of(kept.begin(), kept.end(), [&](const auto& other) {
        return other.first == digest && IsSamePlace(*other.second, *slice.frame);
      });
      if (!slice.frame->is_left_out) kept.emplace_back(digest, slice.frame);
    }
    return slices.size() - kept.size();
  }

  /// The decoded values of a slice, and all that makes voxels of them.
  StatusOr<Digest> DigestOf(const DicomFile& file, const DicomFrame& frame) {
    if (opened_file_ != &file) {
      PB_ASSIGN_OR_RETURN(opened_, DicomPixels::Open(allowed_, file));
      opened_file_ = &file;
    }
    std::vector<std::int32_t> stored(static_cast<std::size_t>(file.rows * file.columns));
    PB_RETURN_IF_ERROR(
        opened_->Read(static_cast<std::size_t>(&frame - file.frames.data()), stored));
    Sha256 hash;
    hash.Update(std::as_bytes(std::span(stored)));
    const double numbers[] = {static_cast<double>(file.rows), static_cast<double>(file.columns),
                              frame.slope, frame.intercept};
    hash.Update(std::as_bytes(std::span(numbers)));
    return hash.Finish();
  }

  const Folders& allowed_;
  const VolumeProgress& progress_;
  std::unique_ptr<DicomPixels> opened_;
  const DicomFile* opened_file_ = nullptr;
};

Status LeaveOutCopies(const Folders& allowed, const VolumeProgress& progress, DicomSeries& series) {
  PB_ASSIGN_OR_RETURN(const std::size_t copies, CopyFinder(allowed, progress).Mark(series));
  if (copies == 0) return absl::OkStatus();
  RemoveEmptyFiles(series);
  series.repairs.push_back(
      {Repair::kCopies, StrCat(Counted(copies, "slice"), " left out: at the place and with the ",
                               "pixels of another")});
  return absl::OkStatus();
}

template <typename Of>
std::size_t CountValues(const DicomSeries& series, Of of) {
  std::set<std::string> values;
  for (const DicomFile& file : series.files) values.insert(of(file));
  return values.size();
}

bool IsAmbiguous(const DicomSeries& series) {
  const Verdict verdict = JudgeSlices(series).verdict;
  return verdict == Verdict::kDuplicate || verdict == Verdict::kMixed;
}

/// Slices that differ in nothing but kernel and frame of reference; left as they are where that
/// does not make one volume of them, and they may be split.
void TakeAsAlike(DicomSeries& series, const Repairs& rules) {
  if (JudgeSlices(series).verdict != Verdict::kMixed) return;
  DicomSeries alike = series;
  const std::size_t kernels = CountValues(series, [](const DicomFile& f) { return f.kernel; });
  if (rules.contains(Repair::kKernel) && kernels > 1) {
    for (DicomFile& file : alike.files) file.kernel.clear();
    alike.repairs.push_back({Repair::kKernel, StrCat(kernels, " reconstruction kernels, or none")});
  }
  const std::size_t frames =
      CountValues(series, [](const DicomFile& f) { return f.frame_of_reference; });
  if (rules.contains(Repair::kFrameOfReference) && frames > 1) {
    alike.has_one_frame = true;
    alike.repairs.push_back(
        {Repair::kFrameOfReference, StrCat(frames, " frames of reference are taken for one")});
  }
  if (rules.contains(Repair::kSplit) && IsAmbiguous(alike)) return;
  series = std::move(alike);
}

/// A value by which slices may be grouped, and its order.
struct PhaseValue {
  std::optional<double> number;
  std::string text;
  auto operator<=>(const PhaseValue&) const = default;
};

/// The slices of one value as a series, to be judged: their numbers lead to no pixels.
DicomSeries SlicesOf(DicomSeries& series, const ValueOfSlice& value_of, const std::string& value) {
  DicomSeries part;
  part.uid = series.uid;
  part.has_one_frame = series.has_one_frame;
  for (DicomFile& file : series.files) {
    std::vector<DicomFrame> own;
    for (const DicomFrame& frame : file.frames) {
      if (!frame.is_left_out && value_of(file, frame) == value) own.push_back(frame);
    }
    if (own.empty()) continue;
    std::vector<DicomFrame> all = std::exchange(file.frames, {});
    part.files.push_back(file);
    part.files.back().frames = std::move(own);
    file.frames = std::move(all);
  }
  return part;
}

/// No parts unless each is a stack by itself.
SeriesParts SplitBy(DicomSeries& series, std::string by, bool shows_values,
                    const ValueOfSlice& value_of) {
  std::map<PhaseValue, std::size_t> values;
  for (const DicomFile& file : series.files) {
    for (const DicomFrame& frame : file.frames) {
      if (frame.is_left_out) continue;
      const std::string text = value_of(file, frame);
      ++values[{ToNumber(text), text}];
    }
  }
  const bool are_stacks =
      std::all_of(values.begin(), values.end(), [](const auto& one) { return one.second >= 2; });
  if (values.size() < 2 || values.size() > kMaxParts || !are_stacks) return {};
  SeriesParts found{std::move(by), value_of, {}, shows_values};
  for (const auto& [value, slices] : values) {
    if (IsAmbiguous(SlicesOf(series, value_of, value.text))) return {};
    found.values.push_back(value.text);
  }
  return found;
}

}  // namespace

SeriesParts SplitSeries(DicomSeries series) {
  SeriesParts found =
      SplitBy(series, "FrameOfReferenceUID", false,
              [](const DicomFile& file, const DicomFrame&) { return file.frame_of_reference; });
  if (found.values.empty()) {
    found = SplitBy(series, "ConvolutionKernel", false,
                    [](const DicomFile& file, const DicomFrame&) { return file.kernel; });
  }
  for (const PhaseAttribute& one : kPhaseAttributes) {
    if (!found.values.empty()) return found;
    found = SplitBy(series, std::string(one.name), !one.is_clock,
                    [&one](const DicomFile&, const DicomFrame& frame) {
                      const auto stated = frame.phase.find(one.name);
                      return stated == frame.phase.end() ? std::string() : stated->second;
                    });
  }
  return found;
}

DicomSeries RepairedSeries::Part(std::size_t part) && {
  if (part == 0) return std::move(whole);
  const std::string& value = parts.values[part - 1];
  LeaveOut(whole, [&](const DicomFile& file, const DicomFrame& frame) {
    return parts.value_of(file, frame) != value;
  });
  std::string what = StrCat("part ", part, " of ", Count(), ", by ", parts.by);
  if (parts.shows_values && ToNumber(value)) what += StrCat(" ", value);
  whole.repairs.push_back({Repair::kSplit, std::move(what), static_cast<int>(part)});
  return std::move(whole);
}

StatusOr<RepairedSeries> RepairSeries(const Folders& allowed, DicomSeries series,
                                      const Repairs& rules, const VolumeProgress& progress) {
  if (rules.contains(Repair::kLocalizer)) LeaveOutScreens(series, rules);
  if (rules.contains(Repair::kSecondaryCapture)) {
    ChangeFiles(series, Repair::kSecondaryCapture, "secondary captures", [](DicomFile& file) {
      return IsSecondaryCapture(file) && !std::exchange(file.sop_class, "").empty();
    });
  }
  if (rules.contains(Repair::kBurnedIn)) {
    ChangeFiles(series, Repair::kBurnedIn, "annotation may be burned in", [](DicomFile& file) {
      return !file.burned_in.empty() && std::exchange(file.burned_in, "") != "NO";
    });
  }
  if (rules.contains(Repair::kMonochrome1)) {
    ChangeFiles(series, Repair::kMonochrome1, "stored values inverted", Invert);
  }
  if (rules.contains(Repair::kRescale)) TakeAsArbitrary(series);
  if (rules.contains(Repair::kCopies)) {
    PB_RETURN_IF_ERROR(LeaveOutCopies(allowed, progress, series));
  }
  TakeAsAlike(series, rules);
  RepairedSeries repaired{std::move(series), {}};
  if (rules.contains(Repair::kSplit) && IsAmbiguous(repaired.whole)) {
    repaired.parts = SplitSeries(repaired.whole);
  }
  return repaired;
}

Digest DigestOfPart(const Digest& source, std::size_t part) {
  return part == 0 ? source : Sha256Of(StrCat(source.Hex(), " part ", part));
}

}  // namespace patchbay::workers
