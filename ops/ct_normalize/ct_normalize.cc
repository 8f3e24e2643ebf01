#include "ops/ct_normalize/ct_normalize.h"

#include <algorithm>
#include <utility>

#include "ops/intensity/tone_math.h"
#include "ops/steps/op_program.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/value_statistics.h"

namespace patchbay::ops {
namespace {

constexpr const char* kNumbers[] = {"lower", "upper", "mean", "std"};

Status Settle(const Json& statistic, Json& options) {
  Json numbers = Json::object();
  for (const char* name : kNumbers) {
    PB_ASSIGN_OR_RETURN(numbers[name], JsonDouble(statistic, name, plan::kCtForeground));
  }
  PB_RETURN_IF_ERROR(plan::ReadOptions<CtNormalizeOptions>(numbers).CheckNumbers());
  options.update(numbers);
  return absl::OkStatus();
}

Status Compile(const plan::OpStep& step, ProgramBuilder& program) {
  const auto options = plan::ReadOptions<CtNormalizeOptions>(step.options);
  PB_RETURN_IF_ERROR(options.CheckNumbers());
  program.AddFixed(
      ClippedLine{static_cast<float>(*options.lower), static_cast<float>(*options.upper),
                  NormalisingLine(*options.mean, std::max(*options.std, kMinDeviation))});
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::Option<CtNormalizeOptions>> CtNormalizeOptions::Table() {
  using O = CtNormalizeOptions;
  const auto number = [](std::optional<double> O::*member, const char* name, const char* help) {
    return plan::OptionOf(member, {.name = name, .min = -1e6, .max = 1e6, .help = help});
  };
  return {number(&O::lower, "lower", "lower clip bound"),
          number(&O::upper, "upper", "upper clip bound"),
          number(&O::mean, "mean", "mean of the foreground"),
          number(&O::std, "std", "standard deviation of the foreground; above 0")};
}

Status CtNormalizeOptions::CheckNumbers() const {
  const std::optional<double> numbers[] = {lower, upper, mean, std};
  for (std::size_t i = 0; i < 4; ++i) {
    if (numbers[i]) continue;
    return InvalidArgument(kNumbers[i],
                           ": missing: without lower, upper, mean and std `patchbay lock` takes "
                           "them from the foreground of the training images");
  }
  if (!(*lower < *upper)) {
    return InvalidArgument("lower: ", *lower, " is not below upper, ", *upper);
  }
  if (*std > 0) return absl::OkStatus();
  return InvalidArgument("std must be above 0");
}

plan::OpRow DescribeCtNormalize() {
  return {.number = CtNormalizeOptions::kNumber,
          .keys = plan::KeysOf<CtNormalizeOptions>(
              "ct_normalize",
              "(clipped - mean) / std with the numbers of the training set's foreground, as "
              "nnU-Net does for CT: given, or those of the lock; volumes; not with zscore, "
              "percentile or normalize"),
          .compile = Compile,
          .needs = {.once = true},
          .axes = plan::OpAxes::kVolume,
          .scale = plan::OpScale::kNormalised,
          .example = {{"lower", -90}, {"upper", 200}, {"mean", 40}, {"std", 30}},
          .statistic = {.name = std::string(plan::kCtForeground),
                        .awaits =
                            [](const Json& options) {
                              return plan::ReadOptions<CtNormalizeOptions>(options).IsAwaiting();
                            },
                        .settle = Settle}};
}

}  // namespace patchbay::ops
