#include "runtime/plan/ops/op_list.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/plan/ops/cast.h"
#include "runtime/plan/ops/crop.h"
#include "runtime/plan/ops/flip.h"
#include "runtime/plan/ops/normalize.h"
#include "runtime/plan/ops/rotate90.h"

namespace patchbay::plan {
namespace {

constexpr std::uint32_t kUseBits = 6;
static_assert(kMaxOps <= (1u << kUseBits), "a use must fit beside the op's number");

struct OpRow {
  OpNumber number;
  config::Key keys;
};

/// Every op, in the order in which ops are applied: geometry, intensity, type.
std::vector<OpRow> OpRows() {
  return {{OpNumber::kCrop, CropOptions::Keys()},
          {OpNumber::kFlip, FlipOptions::Keys()},
          {OpNumber::kRotate90, Rotate90Options::Keys()},
          {OpNumber::kNormalize, NormalizeOptions::Keys()},
          {OpNumber::kCast, CastOptions::Keys()}};
}

std::size_t PlaceOf(const std::vector<OpRow>& rows, const std::string& name) {
  const auto is_it = [&name](const OpRow& row) { return row.keys.name == name; };
  return static_cast<std::size_t>(std::find_if(rows.begin(), rows.end(), is_it) - rows.begin());
}

using PlacedStep = std::pair<std::size_t, OpStep>;

StatusOr<PlacedStep> ReadStep(const std::vector<OpRow>& rows, const Json& step,
                              const std::string& place) {
  if (!step.is_object() || step.size() != 1) return WrongOp(place, "not one name with options");
  const std::string& name = step.begin().key();
  OpStep read;
  read.key = StrCat(place, ".", name);
  const std::size_t row = PlaceOf(rows, name);
  if (row == rows.size()) return WrongOp(read.key, "unknown op");
  read.op = rows[row].number;
  PB_ASSIGN_OR_RETURN(read.options, config::ValidateJson(step.begin().value(), rows[row].keys,
                                                         StrCat("check ops: ", read.key)));
  return PlacedStep{row, std::move(read)};
}

bool ComesBefore(const PlacedStep& a, const PlacedStep& b) { return a.first < b.first; }

}  // namespace

Status WrongOp(std::string_view key, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("check ops: key '", key, "': ", cause));
}

std::uint32_t Occurrence(const OpStep& step) {
  return (static_cast<std::uint32_t>(step.op) << kUseBits) | step.use;
}

std::vector<config::Key> OpKeys() {
  std::vector<config::Key> keys;
  for (OpRow& row : OpRows()) keys.push_back(std::move(row.keys));
  return keys;
}

StatusOr<std::vector<OpStep>> OrderOps(const Json& preprocess, const Json& augment) {
  const bool lists = preprocess.is_array() && augment.is_array();
  if (!lists || preprocess.size() + augment.size() > kMaxOps) {
    return absl::InvalidArgumentError(
        StrCat("check ops: expected two lists of at most ", kMaxOps, " ops together"));
  }
  const std::vector<OpRow> rows = OpRows();
  std::vector<PlacedStep> placed;
  for (const auto& [name, list] :
       {std::pair<const char*, const Json&>{"preprocess", preprocess}, {"augment", augment}}) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      PB_ASSIGN_OR_RETURN(placed.emplace_back(),
                          ReadStep(rows, list[i], StrCat(name, "[", i, "]")));
    }
  }
  std::stable_sort(placed.begin(), placed.end(), ComesBefore);
  std::map<OpNumber, std::uint32_t> uses;
  std::vector<OpStep> steps;
  for (PlacedStep& step : placed) {
    step.second.use = uses[step.second.op]++;
    steps.push_back(std::move(step.second));
  }
  return steps;
}

Json InFixedOrder(const Json& steps) {
  const std::vector<OpRow> rows = OpRows();
  std::vector<Json> sorted(steps.begin(), steps.end());
  std::stable_sort(sorted.begin(), sorted.end(), [&rows](const Json& a, const Json& b) {
    return PlaceOf(rows, a.begin().key()) < PlaceOf(rows, b.begin().key());
  });
  return sorted;
}

Status CheckOps(const Json& preprocess, const Json& augment, std::int64_t patch_height,
                std::int64_t patch_width) {
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, OrderOps(preprocess, augment));
  std::size_t channels = 1;
  for (const OpStep& step : steps) {
    if (step.op == OpNumber::kRotate90 && patch_height != patch_width) {
      return WrongOp(step.key,
                     StrCat("needs a square patch, got ", patch_height, " x ", patch_width));
    }
    if (step.op != OpNumber::kNormalize) continue;
    const auto normalize = NormalizeOptions::FromJson(step.options);
    channels = std::max({channels, normalize.mean.size(), normalize.std.size()});
  }
  for (const OpStep& step : steps) {
    if (step.op != OpNumber::kNormalize) continue;
    const Status fits = CheckChannels(NormalizeOptions::FromJson(step.options), channels);
    if (!fits.ok()) return WrongOp(step.key, MessageOf(fits));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::plan
