#include "runtime/model/ops/op_list.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/ops/affine.h"
#include "runtime/model/ops/cast.h"
#include "runtime/model/ops/color_jitter.h"
#include "runtime/model/ops/crop.h"
#include "runtime/model/ops/ct_normalize.h"
#include "runtime/model/ops/elastic.h"
#include "runtime/model/ops/factor.h"
#include "runtime/model/ops/flip.h"
#include "runtime/model/ops/gamma.h"
#include "runtime/model/ops/gaussian_blur.h"
#include "runtime/model/ops/gaussian_noise.h"
#include "runtime/model/ops/hed_jitter.h"
#include "runtime/model/ops/icc_to_srgb.h"
#include "runtime/model/ops/low_resolution.h"
#include "runtime/model/ops/normalize.h"
#include "runtime/model/ops/rotate90.h"
#include "runtime/model/ops/stain_jitter.h"
#include "runtime/model/ops/stain_normalize.h"
#include "runtime/model/ops/volume_chain.h"
#include "runtime/model/ops/window.h"
#include "runtime/model/ops/zscore.h"

namespace patchbay::plan {
namespace {

constexpr std::uint32_t kUseBits = 6;
static_assert(kMaxOps <= (1u << kUseBits), "a use must fit beside the op's number");

struct OpRow {
  OpNumber number;
  config::Key keys;
};

/// Every op, in the order in which ops are applied: geometry, colour, blur, noise, range, type.
std::vector<OpRow> OpRows() {
  return {{OpNumber::kCrop, CropOptions::Keys()},
          {OpNumber::kFlip, FlipOptions::Keys()},
          {OpNumber::kRotate90, Rotate90Options::Keys()},
          {OpNumber::kAffine, AffineOptions::Keys()},
          {OpNumber::kElastic, ElasticOptions::Keys()},
          {OpNumber::kIccToSrgb, IccToSrgbOptions::Keys()},
          {OpNumber::kStainNormalize, StainNormalizeOptions::Keys()},
          {OpNumber::kStainJitter, StainJitterOptions::Keys()},
          {OpNumber::kHedJitter, HedJitterOptions::Keys()},
          {OpNumber::kColorJitter, ColorJitterOptions::Keys()},
          {OpNumber::kWindow, WindowOptions::Keys()},
          {OpNumber::kCtNormalize, CtNormalizeOptions::Keys()},
          {OpNumber::kZscore, ZscoreOptions::Keys()},
          {OpNumber::kGaussianBlur, GaussianBlurOptions::Keys()},
          {OpNumber::kGaussianNoise, GaussianNoiseOptions::Keys()},
          {OpNumber::kBrightness, FactorOptions::BrightnessKeys()},
          {OpNumber::kContrast, FactorOptions::ContrastKeys()},
          {OpNumber::kLowResolution, LowResolutionOptions::Keys()},
          {OpNumber::kGamma, GammaOptions::Keys()},
          {OpNumber::kNormalize, NormalizeOptions::Keys()},
          {OpNumber::kCast, CastOptions::Keys()}};
}

struct NeedsRow {
  OpNumber op;
  OpNeeds needs;
};

/// Needs of each op; one that is not here needs nothing.
constexpr NeedsRow kNeeds[] = {
    {OpNumber::kCrop, {.moves = true, .random = true}},
    {OpNumber::kFlip, {.moves = true, .random = true}},
    {OpNumber::kRotate90, {.moves = true, .random = true}},
    {OpNumber::kAffine, {.moves = true, .between = true, .random = true}},
    {OpNumber::kElastic, {.moves = true, .between = true, .random = true, .once = true}},
    {OpNumber::kIccToSrgb, {.rgb = true, .once = true}},
    {OpNumber::kStainNormalize, {.rgb = true, .once = true}},
    {OpNumber::kStainJitter, {.rgb = true, .random = true}},
    {OpNumber::kHedJitter, {.rgb = true, .random = true}},
    {OpNumber::kColorJitter, {.rgb = true, .statistics = true, .random = true, .once = true}},
    {OpNumber::kGaussianBlur, {.neighbours = true, .random = true, .once = true}},
    {OpNumber::kGaussianNoise, {.random = true, .once = true}},
    {OpNumber::kWindow, {.once = true, .volume = true}},
    {OpNumber::kCtNormalize, {.once = true, .volume = true}},
    {OpNumber::kZscore, {.once = true, .volume = true}},
    {OpNumber::kBrightness, {.random = true, .once = true, .volume = true}},
    {OpNumber::kContrast, {.statistics = true, .random = true, .once = true, .volume = true}},
    {OpNumber::kLowResolution, {.neighbours = true, .random = true, .once = true, .volume = true}},
    {OpNumber::kGamma, {.statistics = true, .random = true, .volume = true}},
};

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

/// Ops that may be named once are; those that sample between pixels agree on the border.
Status CheckTogether(const std::vector<OpStep>& steps) {
  const OpStep* border = nullptr;
  for (const OpStep& step : steps) {
    const OpNeeds needs = NeedsOf(step.op);
    if (needs.once && step.use != 0) {
      return WrongOp(step.key, "named twice; a chain has room for one");
    }
    if (!needs.between) continue;
    if (border != nullptr && BorderOf(border->options) != BorderOf(step.options)) {
      return WrongOp(step.key, StrCat("border: differs from that of ", border->key));
    }
    border = &step;
  }
  return absl::OkStatus();
}

Status CheckShape(const OpStep& step, const Extent& patch) {
  if (step.op == OpNumber::kRotate90 && patch.y != patch.x) {
    return WrongOp(step.key, StrCat("needs a square patch, got ", patch.y, " x ", patch.x));
  }
  if (step.op == OpNumber::kAffine && AffineOptions::FromJson(step.options).HasOneRangeAnAxis()) {
    return WrongOp(step.key, "degrees: a range for each axis is for volumes; give [low, high]");
  }
  if (step.op != OpNumber::kElastic) return absl::OkStatus();
  const auto elastic = ElasticOptions::FromJson(step.options);
  const Status folds = CheckFolding(elastic, {std::min(patch.y, patch.x)});
  return folds.ok() ? folds : WrongOp(step.key, MessageOf(folds));
}

bool ComesBefore(const PlacedStep& a, const PlacedStep& b) { return a.first < b.first; }

}  // namespace

Status WrongOp(std::string_view key, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("check ops: key '", key, "': ", cause));
}

OpNeeds NeedsOf(OpNumber op) {
  const auto* row = std::find_if(std::begin(kNeeds), std::end(kNeeds),
                                 [op](const NeedsRow& each) { return each.op == op; });
  return row != std::end(kNeeds) ? row->needs : OpNeeds{};
}

std::uint32_t Occurrence(const OpStep& step) {
  return (static_cast<std::uint32_t>(step.op) << kUseBits) | step.use;
}

std::vector<config::Key> OpKeys() {
  std::vector<config::Key> keys;
  for (OpRow& row : OpRows()) keys.push_back(std::move(row.keys));
  return keys;
}

StatusOr<std::vector<OpStep>> SortOps(const Json& preprocess, const Json& augment) {
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

Status CheckOps(const Json& preprocess, const Json& augment, const Extent& patch, PatchKind kind) {
  PB_ASSIGN_OR_RETURN(const std::vector<OpStep> steps, SortOps(preprocess, augment));
  PB_RETURN_IF_ERROR(CheckTogether(steps));
  if (IsVolumeChain(steps, patch, kind)) return CheckVolumeChain(steps, patch);
  std::size_t channels = 1;
  for (const OpStep& step : steps) {
    PB_RETURN_IF_ERROR(CheckShape(step, patch));
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
