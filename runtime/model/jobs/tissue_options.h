// Settings by which tissue is told from background, as `labels tissue --option KEY=VALUE` and the
// column `tissue_options` of a table give them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/jobs/option.h"

namespace patchbay {

/// The column of a table whose cells hold them: "closing=40 pen=no", apart by spaces or ';'.
inline constexpr char kTissueOptionsColumn[] = "tissue_options";

/// The key of a payload of `labels tissue` with the cells of a table, and the numbers of the rows
/// that have each: {"closing=40": [0, 3]}.
inline constexpr char kTissueOptionsOfRows[] = "tissue_options";

/// Values that are not set are the profile's.
struct TissueOptions {
  std::string channel;                       ///< "saturation" or "grey"
  std::string threshold;                     ///< "otsu", or 0 to 255
  std::optional<std::int64_t> blur;          ///< side of the median, odd
  std::optional<double> closing;             ///< um
  std::optional<double> min_area, max_hole;  ///< um2
  std::string pen;                           ///< "yes": areas of ink are left out
  std::optional<std::int64_t> black;  ///< pixels whose brightest channel is below are left out

  std::vector<Option> Options();
};

/// InvalidArgument names the key, its value and the allowed values; the last of repeated keys
/// counts.
StatusOr<TissueOptions> ParseTissueOptions(const std::vector<std::string>& texts);

/// The texts of a table's cell.
std::vector<std::string> SplitTissueOptions(std::string_view cell);

/// Whether the text is "otsu" or a whole number of 0 to 255; nullopt for neither, -1 for "otsu".
std::optional<int> ThresholdOf(std::string_view text);

}  // namespace patchbay
