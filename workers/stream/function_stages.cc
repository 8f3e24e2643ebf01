#include "workers/stream/function_stages.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/core/strings.h"
#include "workers/stream/chain_options.h"

namespace patchbay::workers {
namespace {

using plan::FunctionStage;

/// Ops of one part of the chain.
enum class Part { kMoves, kValues, kCast };

Part PartOf(const plan::OpRow& op) {
  if (op.needs.moves) return Part::kMoves;
  return op.rounds_to ? Part::kCast : Part::kValues;
}

/// The steps of a list that belong to parts `first` to `last`.
Json StepsOf(const plan::OpTable& ops, const Json& list, Part first, Part last) {
  Json kept = Json::array();
  for (const Json& step : list) {
    const plan::OpRow* op = ops.Find(step.begin().key());
    if (op != nullptr && PartOf(*op) >= first && PartOf(*op) <= last) kept.push_back(step);
  }
  return kept;
}

/// Nearest integer of the type, ties to even.
template <typename Integer>
void RoundTo(std::span<const std::byte> floats, std::span<std::byte> out) {
  constexpr auto kLow = static_cast<float>(std::numeric_limits<Integer>::min());
  constexpr auto kHigh = static_cast<float>(std::numeric_limits<Integer>::max());
  for (std::size_t i = 0; i < out.size() / sizeof(Integer); ++i) {
    float value = 0;
    std::memcpy(&value, &floats[i * sizeof(value)], sizeof(value));
    const auto rounded = static_cast<Integer>(std::nearbyint(std::clamp(value, kLow, kHigh)));
    std::memcpy(&out[i * sizeof(rounded)], &rounded, sizeof(rounded));
  }
}

/// The part of a chain whose arrays lie as functions see them.
ops::ChainOptions BetweenStages(const ops::Chain& whole) {
  ops::ChainOptions options = whole.options();
  options.layout = PatchLayout::kNhwc;
  // Whether ops work on volumes is decided by the whole chain.
  if (whole.is_volume()) options.kind = plan::PatchKind::kResampled;
  return options;
}

bool HasStage(const std::vector<plan::OwnFunction>& functions, FunctionStage stage) {
  return std::any_of(functions.begin(), functions.end(),
                     [stage](const plan::OwnFunction& each) { return each.stage == stage; });
}

/// The source has the size of the patch from then on.
plan::VolumeFacts Moved(plan::VolumeFacts facts) {
  facts.step = plan::PerAxis{};
  return facts;
}

}  // namespace

StatusOr<FunctionStages> FunctionStages::Of(const plan::Plan& plan, const ops::Chain& whole) {
  FunctionStages stages;
  PB_ASSIGN_OR_RETURN(stages.functions_, plan::OwnFunctionsOf(plan.config().augment));
  if (stages.functions_.empty()) return stages;
  const plan::RunConfig& config = plan.config();
  const bool pixels = HasStage(stages.functions_, FunctionStage::kPixels);
  const bool values = HasStage(stages.functions_, FunctionStage::kValues);
  stages.pixel_type_ = whole.options().source_dtype;
  const auto compile = [&config](ops::ChainOptions options, Part first, Part last) {
    options.preprocess = StepsOf(*config.ops, config.preprocess, first, last);
    options.augment = StepsOf(*config.ops, config.augment, first, last);
    return ops::Chain::Compile(options);
  };
  ops::ChainOptions options = BetweenStages(whole);
  if (pixels) {
    const bool is_bytes = options.source_dtype == DType::kUint8;
    options.dtype = is_bytes ? DType::kUint8 : DType::kFloat32;
    PB_ASSIGN_OR_RETURN(stages.pixels_, compile(options, Part::kMoves, Part::kMoves));
  }
  if (values) {
    options.dtype = DType::kFloat32;
    PB_ASSIGN_OR_RETURN(stages.values_,
                        compile(options, pixels ? Part::kValues : Part::kMoves, Part::kValues));
    options.source_dtype = DType::kFloat32;
    if (options.kind == plan::PatchKind::kResampled) options.kind = plan::PatchKind::kVolume;
  }
  options.dtype = whole.options().dtype;
  options.layout = whole.options().layout;
  PB_ASSIGN_OR_RETURN(stages.slot_,
                      compile(options, values ? Part::kCast : Part::kValues, Part::kCast));
  return stages;
}

std::size_t FunctionStages::PatchBytes(FunctionStage stage) const {
  const DType type = stage == FunctionStage::kPixels ? pixel_type_ : DType::kFloat32;
  return static_cast<std::size_t>(slot_->options().patch.Pixels() * slot_->options().channels) *
         SizeOf(type);
}

TensorView FunctionStages::View(FunctionStage stage, std::span<std::byte> array) const {
  const Extent& patch = slot_->options().patch;
  return ContiguousView<4>(
      array.data(), stage == FunctionStage::kPixels ? pixel_type_ : DType::kFloat32,
      {patch.z, patch.y, patch.x, static_cast<std::int64_t>(slot_->options().channels)});
}

Status FunctionStages::Make(FunctionStage stage, const ConstTensorView& source,
                            const PatchInput& input, std::span<std::byte> out,
                            std::vector<std::byte>& scratch) const {
  if (stage == FunctionStage::kValues) {
    const plan::VolumeFacts facts = pixels_ ? Moved(input.facts) : input.facts;
    return values_->Run(source, input.key, out, scratch, input.colours, &facts);
  }
  if (pixel_type_ == DType::kUint8 || pixel_type_ == DType::kFloat32) {
    return pixels_->Run(source, input.key, out, scratch, input.colours, &input.facts);
  }
  std::vector<std::byte> floats(pixels_->patch_bytes());
  PB_RETURN_IF_ERROR(pixels_->Run(source, input.key, floats, scratch, input.colours, &input.facts));
  pixel_type_ == DType::kInt16 ? RoundTo<std::int16_t>(floats, out)
                               : RoundTo<std::uint16_t>(floats, out);
  return absl::OkStatus();
}

Status FunctionStages::Finish(const ConstTensorView& source, const PatchInput& input,
                              std::span<std::byte> out, std::vector<std::byte>& scratch) const {
  const plan::VolumeFacts facts = Moved(input.facts);
  return slot_->Run(source, input.key, out, scratch, input.colours, &facts);
}

}  // namespace patchbay::workers
