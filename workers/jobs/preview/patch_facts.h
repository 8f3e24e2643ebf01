// A patch's random draws and the contents of its mask, as text for the preview.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/model/plan/plan.h"
#include "workers/plots/preview_sheet.h"

namespace patchbay::workers {

/// Adds geometry, colour and key of the patch, as `chain` draws them.
void AddDraws(const plan::Plan& plan, const ops::Chain& chain, const plan::PatchSpec& spec,
              PatchCard& card);

/// Adds the classes of a patch's mask by their share, and its label by labels.label.rule.
void AddMaskFacts(const plan::Plan& plan, const plan::PatchSpec& spec,
                  const std::vector<std::uint8_t>& mask, PatchCard& card);

}  // namespace patchbay::workers
