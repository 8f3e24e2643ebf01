// Files into series, and whether a series is a volume.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/source/repair.h"
#include "workers/sources/volumes/dicom_file.h"

namespace patchbay::workers {

/// The kind of a series. Only kUniform is read without a policy.
enum class Verdict {
  kUniform,
  kGap,         ///< equally spaced but for missing slices
  kVariable,    ///< any other spacing
  kTilted,      ///< slices shifted against one another: a gantry tilt
  kDuplicate,   ///< several slices at one place: two copies, or a 4-D series
  kMixed,       ///< slices of several sizes, orientations, spacings or frames of reference
  kNotAVolume,  ///< one slice, a localiser, a screen capture, no geometry
  kNotCt,  ///< no image that is read: another modality or class, or CT without Hounsfield units
  kNoSuv,  ///< PET without the attributes that SUV is computed from
};

/// "uniform", "gap", ..., "not-ct", "no-suv".
std::string_view NameOf(Verdict verdict);

/// A frame of a file of the series.
struct SliceRef {
  std::size_t file = 0, frame = 0;
};

/// A deviation from the files, under a rule that the user has consented to.
struct RepairDone {
  Repair rule;
  std::string what;  ///< in numbers, without names
  int part = 0;      ///< kSplit: the place among the parts, from 1
};

struct DicomSeries {
  std::string uid;
  std::vector<DicomFile> files;     ///< sorted by path; each has a slice that is not left out
  bool has_one_frame = false;       ///< its frames of reference are taken for one
  bool may_be_arbitrary = false;    ///< CT whose voxels turn out to be no Hounsfield units is taken
  std::vector<RepairDone> repairs;  ///< made so far

  const DicomFile& FileOf(const SliceRef& slice) const { return files[slice.file]; }
  const DicomFrame& FrameOf(const SliceRef& slice) const {
    return files[slice.file].frames[slice.frame];
  }
  /// "IM0007.dcm", "enhanced.dcm frame 12"; with the path below `folder` where the file lies in it.
  std::string NameOf(const SliceRef& slice, const std::string& folder = "") const;
};

struct Judgement {
  Verdict verdict = Verdict::kNotAVolume;
  /// The reason, in numbers and positions, without file names. For kUniform: a remark for the user,
  /// mostly empty.
  std::string reason;
  std::string warning;             ///< the part of the reason that a user of the voxels should know
  std::vector<SliceRef> at_fault;  ///< the slices that the reason is about
  std::vector<SliceRef> order;     ///< along the slice normal, as far as there is one
  std::vector<double> places_mm;   ///< places of `order`, along the normal
  double step_mm = 0;              ///< between neighbours; the commonest where they differ
  double tolerance_mm = 0;         ///< within which steps count as equal
  double deviation_mm = 0;         ///< the largest difference of a step from step_mm
  double tilt_deg = 0;
  double suv_factor = 1;          ///< SUV by body weight of a value, in PET
  std::vector<std::string> ways;  ///< each the rules that may lift the verdict: "kernel", "split"

  /// "--repair copies or split repairs it", "--geometry resample or accept ingests it"; "" without
  /// a way.
  std::string WayThrough() const;
  /// The reason, with the way through.
  std::string ReasonAndWay() const;
};

/// Air, or padding, is in every CT: a series without a tube voltage must have a value of this or
/// less.
inline constexpr double kLeastPlausibleHu = -200;

/// Groups the files by SeriesInstanceUID, and orders by it; files without pixels are left out.
std::vector<DicomSeries> GroupSeries(std::vector<DicomFile> files);

/// A localiser, screen capture or dose report.
bool IsScreen(const DicomFrame& frame);
bool IsSecondaryCapture(const DicomFile& file);
/// Whether a CT series has a tube voltage, or bits for a value of kLeastPlausibleHu.
bool CanBeHounsfield(const DicomSeries& series);

/// CT in Hounsfield units, MR and PET. Steps count as equal within the larger of 0.01 mm and 1 % of
/// the commonest; a tilt is one from 0.1 degrees on. Slices of different frames of reference are
/// kMixed, unless every slice has its own and the corners of all lie on one grid to 0.01 mm, which
/// `reason` then states. From headers: a series without a tube voltage may turn out not to be CT
/// once its voxels are read.
Judgement JudgeSlices(const DicomSeries& series);
/// The same, with kSplit among the ways where SplitSeries finds parts.
Judgement Judge(const DicomSeries& series);

/// "gap: slices missing at 33.107 mm (IM-0010.dcm)": the verdict, its reason and the files, by name
/// only. Names may identify a patient: for the user's own terminal.
std::string ToString(const DicomSeries& series, const Judgement& judgement);

}  // namespace patchbay::workers
