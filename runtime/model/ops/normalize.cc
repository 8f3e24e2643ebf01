#include "runtime/model/ops/normalize.h"

#include <algorithm>
#include <cmath>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

Status CheckTable(const Json& options) { return CheckValues(NormalizeOptions::FromJson(options)); }

}  // namespace

config::Key NormalizeOptions::Keys() {
  const NormalizeOptions defaults;
  return {.name = "normalize",
          .type = config::KeyType::kMap,
          .help = "(x / scale - mean) / std",
          .members = {{.name = "scale",
                       .type = config::KeyType::kFloat,
                       .fallback = defaults.scale,
                       .help = "the input is divided by this first; above 0"},
                      {.name = "mean",
                       .type = config::KeyType::kFloatList,
                       .fallback = defaults.mean,
                       .min_items = 1,
                       .max_items = kMaxNormalizeValues,
                       .help = "after scaling; one for all channels, or one for each"},
                      {.name = "std",
                       .type = config::KeyType::kFloatList,
                       .fallback = defaults.std,
                       .min_items = 1,
                       .max_items = kMaxNormalizeValues,
                       .help = "after scaling; one for all channels, or one for each; above 0"}},
          .check = CheckTable};
}

NormalizeOptions NormalizeOptions::FromJson(const Json& options) {
  return {options["scale"].get<double>(), options["mean"].get<std::vector<double>>(),
          options["std"].get<std::vector<double>>()};
}

Status CheckValues(const NormalizeOptions& options) {
  const auto finite = [](double v) { return std::isfinite(v); };
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  if (!positive(options.scale)) return absl::InvalidArgumentError("scale must be above 0");
  if (!std::all_of(options.mean.begin(), options.mean.end(), finite)) {
    return absl::InvalidArgumentError("mean must be finite");
  }
  if (!std::all_of(options.std.begin(), options.std.end(), positive)) {
    return absl::InvalidArgumentError("std must be above 0 in every channel");
  }
  return absl::OkStatus();
}

Status CheckChannels(const NormalizeOptions& options, std::size_t channels) {
  const auto fits = [channels](const std::vector<double>& list) {
    return list.size() == 1 || list.size() == channels;
  };
  if (fits(options.mean) && fits(options.std)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(options.mean.size(), " means and ", options.std.size(),
                                           " stds for ", channels, " channels: expected 1 or ",
                                           channels, " of each"));
}

}  // namespace patchbay::plan
