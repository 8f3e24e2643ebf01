// The two lists of ops of a run config: the order in which ops are applied, and the random numbers
// that each draws. Both affect the bytes of patches; neither depends on the order of the lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxOps = 64;  ///< ops of both lists together

/// One op of a config at its place of the chain.
struct OpStep {
  const OpRow* op = nullptr;  ///< row of the table that SortOps was given
  std::uint32_t use = 0;      ///< number of uses of the same op before it
  std::string key = {};       ///< where the config has it: "augment[0].flip"
  Json options = {};          ///< checked, every one present
};

/// How patches lie in their images, by the config alone.
enum class PatchKind : std::uint8_t {
  kPlane,      ///< patch.size is [y, x]
  kVolume,     ///< [z, y, x]: of volumes, one slice or several
  kResampled,  ///< the same, brought to patch.spacing
};

/// DrawKey::op_occurrence of an op's n-th use.
std::uint32_t Occurrence(OpNumber op, std::uint32_t use);
inline std::uint32_t Occurrence(const OpStep& step) {
  return Occurrence(step.op->number, step.use);
}

/// Both lists ([{op: {...}}]) as one chain, in the fixed order; uses of the same op keep the order
/// in which they are named. InvalidArgument names the step by its place ("key 'augment[0].flip':
/// ...").
StatusOr<std::vector<OpStep>> SortOps(const OpTable& ops, const Json& preprocess,
                                      const Json& augment);

/// One list in the fixed order. Requires a list that passed its key table.
Json InFixedOrder(const OpTable& ops, const Json& steps);

/// Checks the ops independently of images. Refuses lists of different lengths, rotate90 on a patch
/// that is not square, an elastic that folds, two uses of an op that may be named once, different
/// borders, and ops of slides together with ops of volumes. Errors as for SortOps.
Status CheckOps(const OpTable& ops, const Json& preprocess, const Json& augment,
                const Extent& patch, PatchKind kind = PatchKind::kPlane);

/// "check ops: key 'augment[0].flip': <cause>".
Status WrongOp(std::string_view key, std::string_view cause);

/// Whether a step is made for volumes alone: window, zscore, flip with axes, ...
bool IsVolumeStep(const OpStep& step);

/// Whether the steps work on the patch as a volume (three axes under one draw, one channel): true
/// when one of the steps does, or patches are resampled to a spacing. Otherwise each slice is an
/// image, and ops that move whole pixels or map single values treat all slices alike. Ops of
/// OpAxes::kDepth work on volumes wherever patches have three axes, even with one slice, so that no
/// other op changes their effect.
bool IsVolumeChain(const std::vector<OpStep>& steps, const Extent& patch,
                   PatchKind kind = PatchKind::kPlane);

/// Members of plan::VolumeFacts that the steps need.
struct FactsNeeded {
  bool spacing = false;  ///< affine turns in millimetres, elastic moves by them, patch.spacing
  bool body = false;     ///< zscore
};
FactsNeeded FactsNeededBy(const std::vector<OpStep>& steps, const Extent& patch,
                          PatchKind kind = PatchKind::kPlane);

/// A step of a list, where the list has it.
struct FoundOp {
  const OpRow* op = nullptr;  ///< null: none
  std::string key = {};       ///< "preprocess[0].stain_normalize"
  const Json* options = nullptr;

  explicit operator bool() const { return op != nullptr; }
};
/// The first step of both lists ([{op: {...}}], checked) for whose row `is_it` is true.
template <typename IsIt>
FoundOp FindOp(const OpTable& ops, const Json& preprocess, const Json& augment, IsIt is_it) {
  const Json* const lists[] = {&preprocess, &augment};
  for (const Json* list : lists) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      const auto step = (*list)[i].begin();
      const OpRow* row = ops.Find(step.key());
      if (row == nullptr || !is_it(*row, *step)) continue;
      const char* name = list == &preprocess ? "preprocess[" : "augment[";
      return {row, name + std::to_string(i) + "]." + step.key(), &*step};
    }
  }
  return {};
}

/// The two lists of a run config, and the table of the ops that they name.
struct OpLists {
  const OpTable* ops = nullptr;     ///< outlives the lists
  Json preprocess = Json::array();  ///< [{op: {option: value}}], every option present
  Json augment = Json::array();

  template <typename IsIt>
  FoundOp Find(IsIt is_it) const {
    return FindOp(*ops, preprocess, augment, is_it);
  }
  StatusOr<std::vector<OpStep>> Steps() const { return SortOps(*ops, preprocess, augment); }
};

/// For FindOp: options wait for numbers that only a lock has.
inline bool AwaitsStatistic(const OpRow& op, const Json& options) {
  return op.statistic.awaits && op.statistic.awaits(options);
}
/// The window of both lists; nullopt without one.
std::optional<ValueWindow> FindWindow(const OpLists& lists);
/// Hounsfield units after the window; unchanged without one.
double Windowed(double hu, const std::optional<ValueWindow>& window);

}  // namespace patchbay::plan
