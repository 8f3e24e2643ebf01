#include "runtime/model/ops/op_list.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/ops/own_functions.h"

namespace patchbay::plan {
namespace {

constexpr std::uint32_t kUseBits = 6;
static_assert(kMaxOps <= (1u << kUseBits), "a use must fit beside the op's number");

StatusOr<OpStep> ReadStep(const OpTable& ops, const Json& step, const std::string& place) {
  if (!step.is_object() || step.size() != 1)
    return WrongOp(place, "expected one op name with its options");
  OpStep read;
  read.key = StrCat(place, ".", step.begin().key());
  read.op = ops.Find(step.begin().key());
  if (read.op == nullptr) return WrongOp(read.key, "unknown op");
  PB_ASSIGN_OR_RETURN(read.options, config::ValidateJson(step.begin().value(), read.op->keys,
                                                         StrCat("check ops: ", read.key)));
  return read;
}

/// Checks that ops that may be named only once are, and that ops that sample between pixels have
/// the same border.
Status CheckTogether(const std::vector<OpStep>& steps) {
  const OpStep* border = nullptr;
  for (const OpStep& step : steps) {
    if (step.op->needs.once && step.use != 0) {
      return WrongOp(step.key, "named twice; a chain has room for one");
    }
    if (!step.op->needs.between) continue;
    if (border != nullptr && border->options["border"] != step.options["border"]) {
      return WrongOp(step.key, StrCat("border: differs from that of ", border->key));
    }
    border = &step;
  }
  return absl::OkStatus();
}

/// A refusal of a row, with the key that it is about.
Status AtKey(const OpStep& step, const Status& refusal) {
  return refusal.ok() ? refusal : WrongOp(step.key, MessageOf(refusal));
}

/// Lists with one value a channel have as many as the longest, or one.
Status CheckChannels(const std::vector<OpStep>& steps) {
  std::size_t channels = 1;
  for (const OpStep& step : steps) {
    if (step.op->channels) channels = std::max(channels, step.op->channels(step.options));
  }
  for (const OpStep& step : steps) {
    if (!step.op->check_channels) continue;
    PB_RETURN_IF_ERROR(AtKey(step, step.op->check_channels(step.options, channels)));
  }
  return absl::OkStatus();
}

Status CheckPlaneChain(const std::vector<OpStep>& steps, const Extent& patch) {
  for (const OpStep& step : steps) {
    if (!step.op->check_plane) continue;
    PB_RETURN_IF_ERROR(AtKey(step, step.op->check_plane(step.options, patch)));
  }
  return absl::OkStatus();
}

Status CheckVolumeStep(const OpStep& step, const Extent& patch) {
  const OpRow& op = *step.op;
  if (op.axes == OpAxes::kPlane) {
    return WrongOp(step.key, "for 2-D images; another step makes this chain one for volumes");
  }
  return op.check_volume ? AtKey(step, op.check_volume(step.options, patch)) : absl::OkStatus();
}

/// Refuses ops of 2-D images and a second normaliser in a chain of volumes.
Status CheckVolumeChain(const std::vector<OpStep>& steps, const Extent& patch) {
  const OpStep* normaliser = nullptr;
  for (const OpStep& step : steps) {
    PB_RETURN_IF_ERROR(CheckVolumeStep(step, patch));
    if (step.op->scale != OpScale::kNormalised) continue;
    if (normaliser != nullptr) {
      return WrongOp(step.key,
                     StrCat("excludes ", normaliser->key,
                            ": at most one of ct_normalize, percentile, zscore and normalize"));
    }
    normaliser = &step;
  }
  return absl::OkStatus();
}

}  // namespace

Status WrongOp(std::string_view key, std::string_view cause) {
  return InvalidArgument("check ops: key '", key, "': ", cause);
}

std::uint32_t Occurrence(OpNumber op, std::uint32_t use) {
  return (static_cast<std::uint32_t>(op) << kUseBits) | use;
}

StatusOr<std::vector<OpStep>> SortOps(const OpTable& ops, const Json& preprocess,
                                      const Json& augment) {
  const bool lists = preprocess.is_array() && augment.is_array();
  if (!lists || preprocess.size() + augment.size() > kMaxOps) {
    return InvalidArgument("check ops: expected two lists of at most ", kMaxOps, " ops together");
  }
  std::vector<OpStep> steps;
  for (const auto& [name, list] :
       {std::pair<const char*, const Json&>{"preprocess", preprocess}, {"augment", augment}}) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (IsOwnFunction(list[i])) continue;
      PB_ASSIGN_OR_RETURN(steps.emplace_back(), ReadStep(ops, list[i], StrCat(name, "[", i, "]")));
    }
  }
  // The rows of a table lie one after another, in the order of application.
  std::stable_sort(steps.begin(), steps.end(),
                   [](const OpStep& a, const OpStep& b) { return a.op < b.op; });
  std::map<const OpRow*, std::uint32_t> uses;
  for (OpStep& step : steps) step.use = uses[step.op]++;
  return steps;
}

Json InFixedOrder(const OpTable& ops, const Json& steps) {
  std::vector<Json> sorted(steps.begin(), steps.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&ops](const Json& a, const Json& b) {
    return ops.Find(a.begin().key()) < ops.Find(b.begin().key());
  });
  return sorted;
}

Status CheckOps(const OpTable& ops, const Json& preprocess, const Json& augment,
                const Extent& patch, PatchKind kind) {
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, SortOps(ops, preprocess, augment));
  PB_RETURN_IF_ERROR(CheckTogether(steps));
  PB_RETURN_IF_ERROR(IsVolumeChain(steps, patch, kind) ? CheckVolumeChain(steps, patch)
                                                       : CheckPlaneChain(steps, patch));
  return CheckChannels(steps);
}

bool IsVolumeStep(const OpStep& step) {
  return step.op->axes == OpAxes::kVolume ||
         (step.op->for_volumes && step.op->for_volumes(step.options));
}

bool IsVolumeChain(const std::vector<OpStep>& steps, const Extent& patch, PatchKind kind) {
  if (kind == PatchKind::kResampled) return true;
  const bool has_depth = kind == PatchKind::kVolume || patch.z > 1;
  return std::any_of(steps.begin(), steps.end(), [has_depth](const OpStep& step) {
    return IsVolumeStep(step) || (has_depth && step.op->axes == OpAxes::kDepth);
  });
}

FactsNeeded FactsNeededBy(const std::vector<OpStep>& steps, const Extent& patch, PatchKind kind) {
  FactsNeeded needed;
  if (!IsVolumeChain(steps, patch, kind)) return needed;
  needed.spacing = kind == PatchKind::kResampled;
  for (const OpStep& step : steps) {
    const OpNeeds& needs = step.op->needs;
    needed.body = needed.body || needs.body;
    // An op with options in pixels needs millimetres only with its options for volumes.
    needed.spacing =
        needed.spacing || (needs.spacing && (!step.op->for_volumes || IsVolumeStep(step)));
  }
  return needed;
}

std::optional<ValueWindow> FindWindow(const OpLists& lists) {
  const FoundOp found =
      lists.Find([](const OpRow& op, const Json&) { return static_cast<bool>(op.window); });
  if (!found) return std::nullopt;
  return found.op->window(*found.options);
}

double Windowed(double hu, const std::optional<ValueWindow>& window) {
  if (!window) return hu;
  return std::clamp((hu - window->low) / (window->high - window->low), 0.0, 1.0);
}

}  // namespace patchbay::plan
