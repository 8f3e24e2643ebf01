// stain_normalize: maps the colours of every image to those of one reference. What an image's
// colours are is fitted once, at ingest, from all its pixels; a patch is never fitted by itself.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::plan {

enum class StainProfile : std::uint8_t {
  kMacenkoCucim,  ///< "macenko/cucim"
  kReinhard,      ///< "reinhard"
};
std::string_view NameOf(StainProfile profile);

inline constexpr std::string_view kDefaultReference = "default", kCohortReference = "cohort";
inline constexpr std::string_view kStainNormalize = "stain_normalize";
/// Key of the fitted reference "cohort" among the statistics of a lock.
inline constexpr std::string_view kStainReference = "stain_reference";
/// The key of the picture `reference`, likewise: {"profile", "icc_to_srgb", "fit"}.
std::string PictureStatistic(std::string_view reference);
/// The entry of `scanners` for those that have none of their own.
inline constexpr const char kOtherScanners[] = "other";
inline constexpr std::size_t kMaxScanners = 64;

struct StainNormalizeOptions {
  StainProfile profile = StainProfile::kMacenkoCucim;
  /// "default": the shipped numbers. "cohort": the medians over the images of the run. Anything
  /// else is the path of a picture (PNG, TIFF, slide or store) that planning fits. A plan has
  /// `reference_fit` in place of the last two.
  std::string reference = "default";
  /// The reference as numbers, kMacenkoValues or kReinhardValues of them; empty: see `reference`.
  Json reference_fit = Json::array();
  /// Instead of `reference`, one for each scanner: {scanner: as `reference`}. A plan has
  /// `scanner_fits` alone, {"0": numbers, "1": ...}, and images name one by its number.
  Json scanners = Json::object();
  Json scanner_fits = Json::object();  ///< {scanner: as `reference_fit`}
  std::string scanner_column;          ///< of the cohort table

  static config::Key Keys();
  /// From a value that passed Keys().
  static StainNormalizeOptions FromJson(const Json& options);

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

/// The options of the run's stain_normalize: the first in either list ([{op: {...}}], checked).
std::optional<StainNormalizeOptions> FindStainNormalize(const Json& preprocess,
                                                        const Json& augment);

/// Gives a reference another name, in both lists; `scanner` as Unsettled names it.
void SetStainReference(Json& preprocess, Json& augment, const std::string& scanner,
                       std::string_view reference);
/// Puts what a reference came to in place of its name, in both lists.
void SettleStainReference(Json& preprocess, Json& augment, const std::string& scanner,
                          const Json& fit);
/// The same for every reference "cohort".
void SettleCohortReferences(Json& preprocess, Json& augment, const Json& fit);
/// Keeps of the scanners those in `names`, which are then called "0", "1", ...; the name of the
/// column goes too.
void NumberScanners(Json& preprocess, Json& augment, const std::vector<std::string>& names);

}  // namespace patchbay::plan
