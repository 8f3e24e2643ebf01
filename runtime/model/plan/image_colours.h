// Facts of an image that ops of colour need, and their rows in a plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {

/// Why ops that know each image's colours cannot take the image: it is not three channels of uint8.
/// Empty: they can.
std::string WrongColours(const PlannedImage& image);

/// InvalidArgument unless `rows`, the member `name` of a plan, has one row per image.
Status CheckRowsOf(std::string_view name, const Json& rows,
                   const std::vector<PlannedImage>& images);

/// The step that needs the profiles of images: the first in either list.
FoundOp FindIccOp(const OpLists& lists);

/// Keeps the ICC facts of each image if the config has icc_to_srgb, and removes them otherwise.
/// InvalidArgument when an image lacks them, when it is not three channels of uint8, and under
/// `missing: refuse` when it has no lookup.
Status SettleIcc(const RunConfig& config, std::vector<PlannedImage>& images);

}  // namespace patchbay::plan
