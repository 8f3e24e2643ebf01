#include "ops/chain/volume_program.h"

#include <algorithm>
#include <cmath>

#include "ops/cast/cast.h"
#include "ops/gaussian_noise/gaussian_noise.h"
#include "runtime/model/ops/cast.h"
#include "runtime/model/ops/normalize.h"
#include "runtime/model/ops/volume_chain.h"
#include "runtime/model/ops/zscore.h"

namespace patchbay::ops {
namespace {

void SetLine(double mean, double std, double scale, Tone& tone) {
  tone.slope = static_cast<float>(1 / scale / std);
  tone.offset = static_cast<float>(-mean / std);
}

/// Word 0 of the step's first block: whether; word 1 is the parameter's.
template <typename DrawnStep>
std::optional<std::uint32_t> DrawnWord(const std::optional<DrawnStep>& step, const DrawKey& key) {
  if (!step) return std::nullopt;
  DrawKey own = key;
  own.op_occurrence = step->occurrence;
  own.stream = DrawStream::kParameters;
  const PhiloxBlock block = Draw(own, 0);
  if (!(UniformFloat(block.word[0]) < step->options.p)) return std::nullopt;
  return block.word[1];
}

std::int64_t CoarseSide(std::int64_t side, double zoom) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * zoom));
}

}  // namespace

StatusOr<VolumeProgram> VolumeProgram::Make(const std::vector<plan::OpStep>& steps,
                                            const Extent& patch, plan::PatchKind kind) {
  VolumeProgram program;
  program.patch_ = patch;
  program.moves_ = VolumeMoves(patch);
  const plan::FactsNeeded needed = plan::FactsNeededBy(steps, patch, kind);
  program.needs_facts_ = needed.spacing || needed.body;
  for (const plan::OpStep& step : steps) PB_RETURN_IF_ERROR(program.Add(step));
  return program;
}

Status VolumeProgram::Add(const plan::OpStep& step) {
  if (plan::NeedsOf(step.op).moves) {
    moves_.Add(step);
    return absl::OkStatus();
  }
  const std::uint32_t occurrence = plan::Occurrence(step);
  const Json& options = step.options;
  switch (step.op) {
    case plan::OpNumber::kWindow: {
      const auto window = plan::WindowOptions::FromJson(options);
      tone_.has_window = true;
      tone_.low = static_cast<float>(window.low);
      tone_.scale = static_cast<float>(1 / (window.high - window.low));
      break;
    }
    case plan::OpNumber::kCtNormalize: {
      PB_ASSIGN_OR_RETURN(const auto normalize, plan::CtNormalizeOptions::FromJson(options));
      tone_.has_clip = true;
      tone_.lower = static_cast<float>(normalize.lower);
      tone_.upper = static_cast<float>(normalize.upper);
      SetLine(normalize.mean, std::max(normalize.std, plan::kMinDeviation), 1, tone_);
      break;
    }
    case plan::OpNumber::kZscore:
      use_zscore_ = true;
      break;
    case plan::OpNumber::kNormalize: {
      const auto normalize = plan::NormalizeOptions::FromJson(options);
      SetLine(normalize.mean[0], normalize.std[0], normalize.scale, tone_);
      break;
    }
    case plan::OpNumber::kGaussianNoise:
      noise_ = {occurrence, plan::GaussianNoiseOptions::FromJson(options)};
      break;
    case plan::OpNumber::kGaussianBlur:
      blur_ = {occurrence, plan::GaussianBlurOptions::FromJson(options)};
      break;
    case plan::OpNumber::kBrightness:
      brightness_ = {occurrence, plan::FactorOptions::FromJson(options)};
      break;
    case plan::OpNumber::kContrast:
      contrast_ = {occurrence, plan::FactorOptions::FromJson(options)};
      break;
    case plan::OpNumber::kLowResolution:
      low_resolution_ = {occurrence, plan::LowResolutionOptions::FromJson(options)};
      break;
    case plan::OpNumber::kGamma:
      gammas_.push_back({occurrence, plan::GammaOptions::FromJson(options)});
      break;
    case plan::OpNumber::kCast: {
      PB_ASSIGN_OR_RETURN(casts_.emplace_back(),
                          CastTarget(plan::CastOptions::FromJson(options).dtype));
      break;
    }
    default:
      return plan::WrongOp(step.key, "for 2-D images");
  }
  return absl::OkStatus();
}

bool VolumeProgram::retains_stats() const {
  return std::any_of(gammas_.begin(), gammas_.end(),
                     [](const auto& gamma) { return gamma.options.retain_stats; });
}

VolumeIntensity VolumeProgram::DrawIntensity(const DrawKey& key,
                                             const plan::VolumeFacts& facts) const {
  VolumeIntensity drawn;
  drawn.tone = tone_;
  if (use_zscore_) SetLine(facts.mean, std::max(facts.std, plan::kMinDeviation), 1, drawn.tone);
  drawn.coarse = patch_;
  const auto own = [&key](std::uint32_t occurrence) {
    DrawKey k = key;
    k.op_occurrence = occurrence;
    k.stream = DrawStream::kParameters;
    return k;
  };
  if (noise_) drawn.noise = DrawNoise(noise_->options, own(noise_->occurrence), 1);
  if (blur_) drawn.blur = DrawBlur(blur_->options, own(blur_->occurrence));
  if (const auto word = DrawnWord(brightness_, key)) {
    drawn.brightness = static_cast<float>(DrawnAroundOne(brightness_->options.factor, *word));
  }
  if (const auto word = DrawnWord(contrast_, key)) {
    drawn.contrast = static_cast<float>(DrawnAroundOne(contrast_->options.factor, *word));
  }
  if (const auto word = DrawnWord(low_resolution_, key)) {
    const double zoom = Drawn(low_resolution_->options.zoom, *word);
    drawn.coarse = {CoarseSide(patch_.z, zoom), CoarseSide(patch_.y, zoom),
                    CoarseSide(patch_.x, zoom)};
  }
  for (const auto& gamma : gammas_) {
    const auto word = DrawnWord(std::optional(gamma), key);
    if (!word) continue;
    drawn.gammas.push_back({DrawnAroundOne(gamma.options.gamma, *word), gamma.options.retain_stats,
                            gamma.options.invert});
  }
  return drawn;
}

}  // namespace patchbay::ops
