#include "runtime/model/ops/ct_normalize.h"

#include <algorithm>
#include <iterator>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

constexpr const char kName[] = "ct_normalize";
constexpr const char* kNumbers[] = {"lower", "upper", "mean", "std"};

bool IsAwaiting(const Json& options) {
  return std::none_of(std::begin(kNumbers), std::end(kNumbers),
                      [&](const char* name) { return options.contains(name); });
}

Status CheckNumbers(const Json& options) {
  for (const char* name : kNumbers) {
    if (options.contains(name)) continue;
    return absl::InvalidArgumentError(
        StrCat(name,
               ": missing: without lower, upper, mean and std `patchbay lock` takes them from the "
               "foreground of the training images"));
  }
  const double lower = options["lower"].get<double>(), upper = options["upper"].get<double>();
  if (!(lower < upper)) {
    return absl::InvalidArgumentError(StrCat("lower: ", lower, " is not below upper, ", upper));
  }
  if (options["std"].get<double>() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("std must be above 0");
}

/// All four, or none: then a lock has them.
Status CheckTable(const Json& options) {
  return IsAwaiting(options) ? absl::OkStatus() : CheckNumbers(options);
}

config::Key Number(const char* name, const char* help) {
  return {.name = name, .type = config::KeyType::kFloat, .min = -1e6, .max = 1e6, .help = help};
}

}  // namespace

config::Key CtNormalizeOptions::Keys() {
  return {
      .name = "ct_normalize",
      .type = config::KeyType::kMap,
      .help =
          "(clipped - mean) / std with the numbers of the training set's foreground, as "
          "nnU-Net does for CT: given, or those of the lock; volumes; not with zscore or "
          "normalize",
      .members = {Number("lower", "lower clip bound"), Number("upper", "upper clip bound"),
                  Number("mean", "of the foreground"), Number("std", "of the foreground; above 0")},
      .check = CheckTable};
}

StatusOr<CtNormalizeOptions> CtNormalizeOptions::FromJson(const Json& options) {
  PB_RETURN_IF_ERROR(CheckNumbers(options));
  return CtNormalizeOptions{options["lower"].get<double>(), options["upper"].get<double>(),
                            options["mean"].get<double>(), options["std"].get<double>()};
}

std::string AwaitingCtNormalize(const Json& preprocess, const Json& augment) {
  for (const auto& [name, list] : {std::pair{"preprocess", &preprocess}, {"augment", &augment}}) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto step = (*list)[i].find(kName);
      if (step != (*list)[i].end() && IsAwaiting(*step)) return StrCat(name, "[", i, "].", kName);
    }
  }
  return "";
}

Status SettleCtNormalize(Json& preprocess, Json& augment, const Json& statistics) {
  Json numbers = Json::object();
  for (const char* name : kNumbers) {
    PB_ASSIGN_OR_RETURN(numbers[name], JsonDouble(statistics, name, kCtForeground));
  }
  PB_RETURN_IF_ERROR(CheckNumbers(numbers));
  for (Json* list : {&preprocess, &augment}) {
    for (Json& step : *list) {
      if (step.contains(kName) && IsAwaiting(step[kName])) step[kName].update(numbers);
    }
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan
