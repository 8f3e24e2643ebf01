// The references that a run maps the stains of its images to: as the config names them, and as
// planning settles them. Options of the op that needs a fit of the stains.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::plan {

enum class StainProfile : std::uint8_t {
  kMacenkoCucim,  ///< "macenko/cucim"
  kReinhard,      ///< "reinhard"
};
std::string_view NameOf(StainProfile profile);

/// The treatment of images whose colours are not those of H&E (stain_evidence.h).
enum class StainMisfit : std::uint8_t {
  kRefuse,  ///< the run is refused, and they are named
  kKeep,    ///< their fit is used as it is
  kSkip,    ///< their patches stay unnormalised: in a plan they have no fit
};
/// "refuse", "keep", "skip".
std::string_view NameOf(StainMisfit misfit);

inline constexpr std::string_view kDefaultReference = "default", kCohortReference = "cohort";
/// The column that `patchbay scan` writes.
inline constexpr std::string_view kScannerColumn = "scanner";
/// Key of the fitted reference "cohort" among the statistics of a lock.
inline constexpr std::string_view kStainReference = "stain_reference";
/// The key of the picture `reference`, likewise: {"profile", "icc_to_srgb", "fit"}.
std::string PictureStatistic(std::string_view reference);
/// The entry of `scanners` for scanners without an entry of their own.
inline constexpr const char kOtherScanners[] = "other";
inline constexpr std::size_t kMaxScanners = 64;
/// The label set that fits go by unasked, where a store has it; and the value of `tissue` under
/// which none does.
inline constexpr char kTissueOfFits[] = "tissue", kNoTissueOfFits[] = "none";

struct StainReferences {
  StainProfile profile = StainProfile::kMacenkoCucim;
  /// "default": the built-in fit. "cohort": the medians over the images of the run. Anything
  /// else is the path of a picture (PNG, TIFF, slide or store) that planning fits. A plan has
  /// `reference_fit` in place of the last two.
  std::string reference = "default";
  /// The reference as numbers, kMacenkoValues or kReinhardValues of them; empty: see `reference`.
  Json reference_fit = Json::array();
  /// Instead of `reference`, one for each scanner: {scanner: as `reference`}. A plan has
  /// `scanner_fits` alone, {"0": numbers, "1": ...}, and images name one by its number.
  Json scanners = Json::object();
  Json scanner_fits = Json::object();  ///< {scanner: as `reference_fit`}
  std::string scanner_column;          ///< column of the cohort table
  StainMisfit misfit = StainMisfit::kRefuse;
  /// The label set whose tissue the stains of each image are fitted on, which all of them have;
  /// empty: kTissueOfFits of those that have it, else all pixels; kNoTissueOfFits: all pixels. The
  /// others are numbers of that fit.
  std::string tissue;
  double alpha = 1, beta = kStainTissueOd, background = kStainWhite;

  /// From options that passed the op's keys.
  static StainReferences FromJson(const Json& options);

  /// Whether every image is to have the set `tissue`.
  bool AsksForTissue() const { return !tissue.empty() && tissue != kNoTissueOfFits; }
  /// The label set that fits go by, of the images that have it; empty: none.
  std::string TissueSet() const {
    if (tissue.empty()) return kTissueOfFits;
    return AsksForTissue() ? tissue : "";
  }
  /// Whether the numbers of the fit are those of ingest.
  bool FitsAsIngest() const {
    return alpha == 1 && beta == kStainTissueOd && background == kStainWhite;
  }
  bool IsByScanner() const { return !scanners.empty() || !scanner_fits.empty(); }
  /// How many references images may name: scanners of a plan, or 1.
  std::size_t ReferenceCount() const { return IsByScanner() ? scanner_fits.size() : 1; }
  /// References that are not numbers yet, as the config has them, by scanner; "" is `reference`.
  /// Empty once planning is over; the shipped `reference` counts as numbers.
  std::map<std::string, std::string> Unsettled() const;
  bool NeedsCohort() const;
  /// Targets of the mapping, by PlannedImage::stain_reference. Requires that Unsettled is empty and
  /// scanners are numbered.
  std::vector<MacenkoFit> MacenkoReferences() const;
  std::vector<ReinhardFit> ReinhardReferences() const;
};

/// Whether the text of a reference is a path.
bool IsPictureReference(std::string_view reference);

/// The step that maps stains: the first in either list.
FoundOp FindStainOp(const OpLists& lists);
std::optional<StainReferences> FindStainReferences(const OpLists& lists);

/// Gives a reference another name, in both lists; `scanner` as Unsettled names it.
void SetStainReference(OpLists& lists, const std::string& scanner, std::string_view reference);
/// Replaces the name of a reference by its fit, in both lists.
void SettleStainReference(OpLists& lists, const std::string& scanner, const Json& fit);
/// Replaces every reference "cohort" by `fit`.
void SettleCohortReferences(OpLists& lists, const Json& fit);
/// Gives `tissue` another value.
void SetTissueOfFits(OpLists& lists, std::string_view tissue);
/// Keeps only the scanners in `names`, renames them to "0", "1", ... and removes the name of the
/// column.
void NumberScanners(OpLists& lists, const std::vector<std::string>& names);

}  // namespace patchbay::plan
