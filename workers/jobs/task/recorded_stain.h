// The stain fit that ingest left in a store.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/model/ops/stain_evidence.h"
#include "runtime/model/ops/stain_fit.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

/// The colours to fit: those of the scanner, or under icc_to_srgb their sRGB values.
enum class StainColours : bool { kDevice, kSrgb };

struct RecordedStain {
  plan::StainFit fit;
  std::optional<plan::StainEvidence> evidence;  ///< stores of earlier versions have none
  bool of_tissue = false;  ///< it is that of a label set's tissue, and not of all pixels

  std::string Misfit() const { return plan::MisfitOf(fit, evidence); }
};

/// nullopt for any other image and for a store without a fit; InvalidArgument for one that cannot
/// be read. A slide without a usable profile has no separate fit in sRGB, because its colours stay
/// as they are.
StatusOr<std::optional<RecordedStain>> RecordedStainOf(const Folders& allowed,
                                                       const std::string& path,
                                                       StainColours colours);

/// File of a revision of a label set: how many pixels of its class `tissue` have each colour
/// (ops::SerialiseHistogram).
inline constexpr char kTissueColoursFile[] = "tissue.colours";

/// The members of a store's attributes that hold a fit and its evidence.
struct StainAttributes {
  const char *fit, *evidence;
};
constexpr StainAttributes StainAttributesOf(StainColours colours) {
  return colours == StainColours::kSrgb ? StainAttributes{"stain_srgb", "stain_srgb_facts"}
                                        : StainAttributes{"stain", "stain_facts"};
}

}  // namespace patchbay::workers
