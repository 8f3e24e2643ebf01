#include "runtime/plan/ops/ct_normalize.h"

#include "runtime/base/strings.h"

namespace patchbay::plan {
namespace {

constexpr const char* kNumbers[] = {"lower", "upper", "mean", "std"};

Status CheckTable(const Json& options) {
  for (const char* name : kNumbers) {
    if (options.contains(name)) continue;
    return absl::InvalidArgumentError(
        StrCat(name,
               ": missing: `patchbay lock` takes the four numbers from the training images and "
               "writes them here, or give lower, upper, mean and std"));
  }
  const double lower = options["lower"].get<double>(), upper = options["upper"].get<double>();
  if (!(lower < upper)) {
    return absl::InvalidArgumentError(StrCat("lower: ", lower, " is not below upper, ", upper));
  }
  if (options["std"].get<double>() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("std must be above 0");
}

config::Key Number(const char* name, const char* help) {
  return {.name = name, .type = config::KeyType::kFloat, .min = -1e6, .max = 1e6, .help = help};
}

}  // namespace

config::Key CtNormalizeOptions::Keys() {
  return {.name = "ct_normalize",
          .type = config::KeyType::kMap,
          .help =
              "(clipped - mean) / std with the numbers of the training set's foreground, as "
              "nnU-Net does for CT; volumes; not with zscore or normalize",
          .members = {Number("lower", "what is below becomes this"),
                      Number("upper", "what is above becomes this"),
                      Number("mean", "of the clipped foreground"),
                      Number("std", "of the clipped foreground; above 0")},
          .check = CheckTable};
}

StatusOr<CtNormalizeOptions> CtNormalizeOptions::FromJson(const Json& options) {
  PB_RETURN_IF_ERROR(CheckTable(options));
  return CtNormalizeOptions{options["lower"].get<double>(), options["upper"].get<double>(),
                            options["mean"].get<double>(), options["std"].get<double>()};
}

}  // namespace patchbay::plan
