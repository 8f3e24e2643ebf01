// stain_normalize: maps the colours of every image to those of one reference. What an image's
// colours are is fitted once, at ingest, from all its pixels; a patch is never fitted by itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/config/key_table.h"
#include "runtime/plan/ops/stain_fit.h"

namespace patchbay::plan {

enum class StainProfile : std::uint8_t {
  kMacenkoCucim,  ///< "macenko/cucim"
  kReinhard,      ///< "reinhard"
};
std::string_view NameOf(StainProfile profile);

struct StainNormalizeOptions {
  StainProfile profile = StainProfile::kMacenkoCucim;
  /// "default": the shipped numbers. "cohort": the medians over the images of the run. Anything
  /// else is the path of a picture (PNG, TIFF, slide or store) that planning fits. A plan has
  /// `reference_fit` in place of the last two.
  std::string reference = "default";
  /// The reference as numbers, kMacenkoValues or kReinhardValues of them; empty: see `reference`.
  Json reference_fit = Json::array();

  static config::Key Keys();
  /// From a value that passed Keys().
  static StainNormalizeOptions FromJson(const Json& options);

  /// Whether `reference` is a path.
  bool IsPicture() const;
  /// What is mapped to. Requires that planning is over: `reference` is "default" or
  /// `reference_fit` is there.
  MacenkoFit MacenkoReference() const;
  ReinhardFit ReinhardReference() const;
};

inline constexpr std::string_view kDefaultReference = "default", kCohortReference = "cohort";
inline constexpr std::string_view kStainNormalize = "stain_normalize";
/// What the reference "cohort" came to, among the statistics of a lock.
inline constexpr std::string_view kStainReference = "stain_reference";

/// The options of the run's stain_normalize: the first in either list ([{op: {...}}], checked).
std::optional<StainNormalizeOptions> FindStainNormalize(const Json& preprocess,
                                                        const Json& augment);
/// Gives the reference another name, in both lists.
void SetStainReference(Json& preprocess, Json& augment, std::string_view reference);
/// Puts what the reference came to in place of its name, in both lists.
void SettleStainReference(Json& preprocess, Json& augment, const Json& reference_fit);

}  // namespace patchbay::plan
