#include "runtime/model/plan/plausibility.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/model/ops/cast.h"
#include "runtime/model/ops/ct_normalize.h"
#include "runtime/model/ops/normalize.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::plan {
namespace {

/// um/px from which on an mpp is more likely a magnification.
constexpr double kDoubtfulMpp = 10;
/// The largest value of uint8 images.
constexpr double kWhite = 255;

struct ActingOptions {
  std::string_view op;
  std::vector<std::string> options;
};

/// Ops that change nothing unless one of these options is given.
std::vector<ActingOptions> OpsThatMayBeIdle() {
  return {{"affine", {"degrees", "scale", "shear", "translate"}},
          {"color_jitter", {"brightness", "contrast", "saturation", "hue"}}};
}

/// `p: 0` is as good as the identity.
bool IsNever(const config::YamlNode& options) {
  const config::YamlNode* p = options.Find("p");
  return p != nullptr && config::YamlToJson(*p) == 0;
}

std::optional<IdleKey> FindIdleOp(const config::YamlNode& steps, const char* list) {
  for (std::size_t i = 0; i < steps.items.size(); ++i) {
    const config::YamlNode& item = steps.items[i];
    const bool bare = item.members.empty();
    const std::string& name = bare ? item.text : item.members[0].name;
    for (const ActingOptions& row : OpsThatMayBeIdle()) {
      if (row.op != name) continue;
      const auto is_given = [&](const std::string& option) {
        return !bare && item.members[0].value.Find(option) != nullptr;
      };
      if (std::any_of(row.options.begin(), row.options.end(), is_given)) continue;
      if (!bare && IsNever(item.members[0].value)) continue;
      return IdleKey{StrCat(list, "[", i, "].", name),
                     StrCat("changes nothing: give one of ", StrJoin(row.options, ", "))};
    }
  }
  return std::nullopt;
}

bool ReadsLabels(const Json& sampling) {
  return sampling.contains("class_weights") || sampling.contains("oversample_foreground");
}

/// Whether sampling, of the run or of a split, or the lock goes by the classes of labels.set.
bool SamplesByLabels(const Json& checked) {
  if (ReadsLabels(checked["sampling"])) return true;
  if (!AwaitingCtNormalize(checked["preprocess"], checked["augment"]).empty()) return true;
  const Json splits = checked.value("splits", Json::object());
  return std::any_of(splits.begin(), splits.end(), [](const Json& split) {
    return split.contains("sampling") && ReadsLabels(split["sampling"]);
  });
}

std::optional<IdleKey> FindIdleSet(const Json& checked) {
  const Json labels = checked.value("labels", Json::object());
  const bool has_array =
      labels.value("mask", false) || labels.value("label", Json::object()).contains("rule");
  if (!labels.contains("set") || has_array || SamplesByLabels(checked)) return std::nullopt;
  return IdleKey{"labels.set",
                 "nothing reads it: add an array by mask: true or label.rule, sample by "
                 "class_weights or oversample_foreground, or leave it out"};
}

/// The first step whose values no longer are those of images.
const OpStep* FindNormalised(const std::vector<OpStep>& steps) {
  const auto found = std::find_if(steps.begin(), steps.end(), [](const OpStep& step) {
    return step.op == OpNumber::kNormalize || step.op == OpNumber::kWindow ||
           step.op == OpNumber::kZscore || step.op == OpNumber::kCtNormalize;
  });
  return found == steps.end() ? nullptr : &*found;
}

const OpStep* FindCastToBytes(const std::vector<OpStep>& steps) {
  const auto found = std::find_if(steps.begin(), steps.end(), [](const OpStep& step) {
    return step.op == OpNumber::kCast && CastOptions::FromJson(step.options).dtype == DType::kUint8;
  });
  return found == steps.end() ? nullptr : &*found;
}

double Most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

/// The fault of the numbers for values of 0 to 255; empty when there is none.
std::string FaultForBytes(const NormalizeOptions& options) {
  const double most = std::max(Most(options.mean), Most(options.std));
  if (options.scale == kWhite && most > 1) {
    return StrCat("a mean or std of ", most,
                  " with scale: 255, which makes the values 0 to 1: statistics of values of 0 to "
                  "255 go with scale: 1");
  }
  const bool of_unit = std::all_of(options.mean.begin(), options.mean.end(),
                                   [](double mean) { return mean >= 0 && mean <= 1; });
  const bool shifts = Most(options.mean) > 0 || Most(options.std) < 1;
  if (options.scale != 1 || !of_unit || !shifts) return "";
  return StrCat("a mean of ", Most(options.mean),
                " with scale: 1, which leaves the values 0 to 255: statistics of values of 0 to 1 "
                "go with scale: 255, the default");
}

}  // namespace

std::optional<IdleKey> FindIdleKey(const config::YamlNode& file, const Json& checked) {
  for (const char* list : {"preprocess", "augment"}) {
    const config::YamlNode* steps = file.Find(list);
    if (steps == nullptr) continue;
    if (auto idle = FindIdleOp(*steps, list)) return idle;
  }
  return FindIdleSet(checked);
}

Status CheckBatchType(const RunConfig& config) {
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, SortOps(config.preprocess, config.augment));
  const OpStep* normalised = FindNormalised(steps);
  const OpStep* cast = FindCastToBytes(steps);
  if (normalised == nullptr || (config.dtype != DType::kUint8 && cast == nullptr)) {
    return absl::OkStatus();
  }
  const bool by_batch = config.dtype == DType::kUint8;
  return WrongOp(by_batch ? "batch.dtype" : cast->key,
                 StrCat("uint8 rounds what ", normalised->key, " makes to a few whole numbers; ",
                        by_batch ? "take" : "cast to",
                        " float16, bfloat16 or float32, or normalise in the trainer"));
}

Status CheckNormalize(const RunConfig& config, DType images) {
  if (images != DType::kUint8) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, SortOps(config.preprocess, config.augment));
  const OpStep* first = FindNormalised(steps);
  if (first == nullptr || first->op != OpNumber::kNormalize) return absl::OkStatus();
  const std::string fault = FaultForBytes(NormalizeOptions::FromJson(first->options));
  return fault.empty() ? absl::OkStatus() : WrongOp(first->key, StrCat("images of uint8: ", fault));
}

std::string DoubtfulMpp(const RunConfig& config) {
  for (const double mpp : config.mpp) {
    if (mpp < kDoubtfulMpp) continue;
    return StrCat("patch.mpp: ", mpp,
                  " is taken as um per pixel; of a magnification, 20x is about 0.5 and 40x about "
                  "0.25");
  }
  return "";
}

}  // namespace patchbay::plan
