#include "runtime/model/plan/plausibility.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "runtime/core/strings.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::plan {
namespace {

/// um/px from which on an mpp is more likely a magnification.
constexpr double kDoubtfulMpp = 10;

/// `p: 0` is as good as the identity.
bool IsNever(const config::YamlNode& options) {
  const config::YamlNode* p = options.Find("p");
  return p != nullptr && config::YamlToJson(*p) == 0;
}

std::optional<IdleKey> FindIdleOp(const OpTable& ops, const config::YamlNode& steps,
                                  const char* list) {
  for (std::size_t i = 0; i < steps.items.size(); ++i) {
    const config::YamlNode& item = steps.items[i];
    const bool bare = item.members.empty();
    const std::string& name = bare ? item.text : item.members[0].name;
    const OpRow* row = ops.Find(name);
    if (row == nullptr || row->acts_with.empty()) continue;
    const auto is_given = [&](const std::string& option) {
      return !bare && item.members[0].value.Find(option) != nullptr;
    };
    if (std::any_of(row->acts_with.begin(), row->acts_with.end(), is_given)) continue;
    if (!bare && IsNever(item.members[0].value)) continue;
    return IdleKey{StrCat(list, "[", i, "].", name),
                   StrCat("changes nothing: give one of ", StrJoin(row->acts_with, ", "))};
  }
  return std::nullopt;
}

bool ReadsLabels(const Json& sampling) {
  return sampling.contains("class_weights") || sampling.contains("oversample_foreground");
}

/// Whether sampling, of the run or of a split, or the lock uses the classes of labels.set.
bool SamplesByLabels(const OpTable& ops, const Json& checked) {
  if (ReadsLabels(checked["sampling"])) return true;
  if (FindOp(ops, checked["preprocess"], checked["augment"], AwaitsStatistic)) return true;
  const Json splits = checked.value("splits", Json::object());
  return std::any_of(splits.begin(), splits.end(), [](const Json& split) {
    return split.contains("sampling") && ReadsLabels(split["sampling"]);
  });
}

std::optional<IdleKey> FindIdleSet(const OpTable& ops, const Json& checked) {
  const Json labels = checked.value("labels", Json::object());
  const bool has_array =
      labels.value("mask", false) || labels.value("label", Json::object()).contains("rule");
  if (!labels.contains("set") || has_array || SamplesByLabels(ops, checked)) return std::nullopt;
  return IdleKey{"labels.set",
                 "nothing reads it: add an array by mask: true or label.rule, sample by "
                 "class_weights or oversample_foreground, or leave it out"};
}

/// The first step whose values are no longer those of images.
const OpStep* FindNormalised(const std::vector<OpStep>& steps) {
  const auto found = std::find_if(steps.begin(), steps.end(), [](const OpStep& step) {
    return step.op->scale != OpScale::kKept;
  });
  return found == steps.end() ? nullptr : &*found;
}

const OpStep* FindCastToBytes(const std::vector<OpStep>& steps) {
  const auto found = std::find_if(steps.begin(), steps.end(), [](const OpStep& step) {
    return step.op->rounds_to && step.op->rounds_to(step.options) == DType::kUint8;
  });
  return found == steps.end() ? nullptr : &*found;
}

}  // namespace

std::optional<IdleKey> FindIdleKey(const OpTable& ops, const config::YamlNode& file,
                                   const Json& checked) {
  for (const char* list : {"preprocess", "augment"}) {
    const config::YamlNode* steps = file.Find(list);
    if (steps == nullptr) continue;
    if (auto idle = FindIdleOp(ops, *steps, list)) return idle;
  }
  return FindIdleSet(ops, checked);
}

Status CheckBatchType(const RunConfig& config) {
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, config.Steps());
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
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, config.Steps());
  const OpStep* first = FindNormalised(steps);
  if (first == nullptr || !first->op->fault_for_bytes) return absl::OkStatus();
  const std::string fault = first->op->fault_for_bytes(first->options);
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
