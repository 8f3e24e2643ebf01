#include "ops/chain/op_steps.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <optional>

#include "ops/brightness/brightness.h"
#include "ops/cast/cast.h"
#include "ops/color_jitter/color_jitter.h"
#include "ops/contrast/contrast.h"
#include "ops/ct_normalize/ct_normalize.h"
#include "ops/draws/draws.h"
#include "ops/gamma/gamma.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/gaussian_noise/gaussian_noise.h"
#include "ops/hed_jitter/hed_jitter.h"
#include "ops/icc_to_srgb/icc_lookup.h"
#include "ops/icc_to_srgb/icc_to_srgb.h"
#include "ops/low_resolution/low_resolution.h"
#include "ops/normalize/normalize.h"
#include "ops/stain_jitter/stain_jitter.h"
#include "ops/stain_normalize/reinhard.h"
#include "ops/stain_normalize/stain_normalize.h"
#include "ops/window/window.h"
#include "ops/zscore/zscore.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"

namespace patchbay::ops {
namespace {

template <typename... Parts>
void Say(const PatchDraw& draw, const Parts&... parts) {
  if (draw.said != nullptr) draw.said->push_back(StrCat(parts...));
}

/// "1.25".
std::string Digits(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// icc_to_srgb

Status CompileIcc(const plan::OpStep& step, ProgramBuilder& builder) {
  if (builder.shape().source != DType::kUint8) {
    return plan::WrongOp(step.key,
                         StrCat("needs images of uint8, not ", NameOf(builder.shape().source)));
  }
  builder.Add([](const PatchDraw& draw, StepSink& sink) {
    const IccLookup* const lookup = draw.colours.icc;
    if (lookup != nullptr) sink.Add(IccStep{lookup, lookup->nodes().data(), kIccGrid});
  });
  return absl::OkStatus();
}

// stain_normalize, stain_jitter and hed_jitter: one map of optical densities.

class Densities : public StepMaker {
 public:
  std::vector<plan::MacenkoFit> references;  ///< of stain_normalize: macenko/cucim
  std::vector<DrawnOp<StainJitterOptions>> stain_jitters;
  std::vector<DrawnOp<HedJitterOptions>> hed_jitters;
  double white = 255;

  void Draw(const PatchDraw& draw, StepSink& sink) const override {
    const OdStep od = Composed(draw);
    if (!Normalizes() && od.IsIdentity()) return;
    const OdMap map = OdMapOf(od, Normalizes() ? plan::kStainWhite : 255.0, white);
    if (draw.said != nullptr) SayMap(map, draw);
    sink.Add(map);
  }

 private:
  bool Normalizes() const { return !references.empty(); }

  OdStep Composed(const PatchDraw& draw) const {
    const plan::MacenkoFit reference =
        Normalizes() ? references[draw.colours.stain_reference] : plan::DefaultMacenko();
    OdStep step;
    if (Normalizes() && draw.colours.macenko != nullptr) {
      step = StainNormalizeStep(*draw.colours.macenko, reference);
    }
    for (const auto& jitter : stain_jitters) {
      step = DrawStainJitter(jitter.options, reference, draw.KeyOf(jitter.occurrence)).After(step);
    }
    for (const auto& jitter : hed_jitters) {
      step = DrawHedJitter(jitter.options, draw.KeyOf(jitter.occurrence)).After(step);
    }
    return step;
  }

  static void SayMap(const OdMap& map, const PatchDraw& draw) {
    std::string rows;
    for (std::size_t row = 0; row < 3; ++row) {
      for (const float value : map.matrix[row]) rows += StrCat(" ", Digits(value, 2));
      if (row < 2) rows += " |";
    }
    Say(draw, "density", rows);
  }
};

Densities& DensitiesOf(ProgramBuilder& builder) {
  auto& densities = builder.Shared<Densities>();
  densities.white = builder.shape().White();
  return densities;
}

Status CheckFitted(const plan::OpStep& step, const plan::StainReferences& stain) {
  const auto unsettled = stain.Unsettled();
  if (!unsettled.empty()) {
    return plan::WrongOp(step.key,
                         StrCat("reference: '", unsettled.begin()->second, "': not fitted"));
  }
  for (std::size_t i = 0; i < stain.scanner_fits.size(); ++i) {
    if (!stain.scanner_fits.contains(StrCat(i))) {
      return plan::WrongOp(step.key, "scanner_fits: its scanners are not numbered");
    }
  }
  return absl::OkStatus();
}

Status CompileStainNormalize(const plan::OpStep& step, ProgramBuilder& builder) {
  const auto stain = plan::StainReferences::FromJson(step.options);
  PB_RETURN_IF_ERROR(CheckFitted(step, stain));
  const std::size_t count = stain.ReferenceCount();
  if (stain.profile == plan::StainProfile::kMacenkoCucim) {
    DensitiesOf(builder).references = stain.MacenkoReferences();
    builder.NeedFit([count](const ImageColours& colours) {
      return colours.stain_reference < count && colours.macenko != nullptr;
    });
    return absl::OkStatus();
  }
  builder.NeedFit([count](const ImageColours& colours) {
    return colours.stain_reference < count && colours.reinhard != nullptr;
  });
  builder.Add([references = stain.ReinhardReferences(), white = builder.shape().White()](
                  const PatchDraw& draw, StepSink& sink) {
    const ImageColours& colours = draw.colours;
    if (colours.reinhard == nullptr) return;
    sink.Add(LabMapOf(*colours.reinhard, references[colours.stain_reference], white));
  });
  return absl::OkStatus();
}

Status CompileStainJitter(const plan::OpStep& step, ProgramBuilder& builder) {
  DensitiesOf(builder).stain_jitters.push_back(
      {plan::Occurrence(step), StainJitterOptions::FromJson(step.options)});
  return absl::OkStatus();
}

Status CompileHedJitter(const plan::OpStep& step, ProgramBuilder& builder) {
  DensitiesOf(builder).hed_jitters.push_back(
      {plan::Occurrence(step), HedJitterOptions::FromJson(step.options)});
  return absl::OkStatus();
}

// color_jitter: up to the contrast a point-wise step, from there on one about the mean.

void AddJitter(const ColorJitter& jitter, float white, StepSink& sink) {
  const auto* const end = jitter.order + kColorSteps;
  const auto* const contrast =
      jitter.contrast == 1 ? end : std::find(jitter.order, end, ColorStep::kContrast);
  const auto before = static_cast<int>(contrast - jitter.order);
  sink.Add(JitterStep{jitter, 0, before, 0, white});
  if (contrast != end) sink.AddWhole(MeanJitterStep{{jitter, before, kColorSteps, 0, white}});
}

Status CompileColorJitter(const plan::OpStep& step, ProgramBuilder& builder) {
  builder.Add(
      [occurrence = plan::Occurrence(step), options = ColorJitterOptions::FromJson(step.options),
       white = static_cast<float>(builder.shape().White())](const PatchDraw& draw, StepSink& sink) {
        const auto jitter = DrawColorJitter(options, draw.KeyOf(occurrence));
        if (!jitter) return;
        Say(draw, "brightness ", Digits(jitter->brightness, 2), ", contrast ",
            Digits(jitter->contrast, 2), ", saturation ", Digits(jitter->saturation, 2), ", hue ",
            Digits(jitter->hue, 3));
        AddJitter(*jitter, white, sink);
      },
      true);
  return absl::OkStatus();
}

// window, ct_normalize, zscore, normalize

Status CompileWindow(const plan::OpStep& step, ProgramBuilder& builder) {
  const auto window = WindowOptions::FromJson(step.options);
  builder.Add([made = WindowStep{static_cast<float>(window.range[0]),
                                 static_cast<float>(1 / (window.range[1] - window.range[0]))}](
                  const PatchDraw&, StepSink& sink) { sink.Add(made); });
  return absl::OkStatus();
}

ValueLine LineOf(double mean, double std) {
  return {static_cast<float>(1 / std), static_cast<float>(-mean / std)};
}

Status CompileCtNormalize(const plan::OpStep& step, ProgramBuilder& builder) {
  const auto options = CtNormalizeOptions::FromJson(step.options);
  PB_RETURN_IF_ERROR(options.CheckNumbers());
  builder.Add(
      [made = ClippedLine{static_cast<float>(*options.lower), static_cast<float>(*options.upper),
                          LineOf(*options.mean, std::max(*options.std, kMinDeviation))}](
          const PatchDraw&, StepSink& sink) { sink.Add(made); });
  return absl::OkStatus();
}

Status CompileZscore(const plan::OpStep& /*step*/, ProgramBuilder& builder) {
  builder.Add([](const PatchDraw& draw, StepSink& sink) {
    sink.Add(LineOf(draw.facts.mean, std::max(draw.facts.std, kMinDeviation)));
  });
  return absl::OkStatus();
}

/// Several of normalize as value * slope + offset, composed in double and rounded once.
class ScaledChannels : public StepMaker {
 public:
  /// `zero` has the sign that a volume's offset of 0 has.
  void Add(const std::vector<NormalizeChannel>& channels, double zero) {
    exact_.resize(channels.size(), {1, zero, 1});
    lines_.resize(channels.size());
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const NormalizeChannel& k = channels[c];
      double& slope = exact_[c].scale;
      double& offset = exact_[c].mean;
      slope = slope / k.scale / k.std;
      offset = (offset / k.scale - k.mean) / k.std;
      lines_[c] = {static_cast<float>(slope), static_cast<float>(offset)};
    }
  }
  void Draw(const PatchDraw& /*draw*/, StepSink& sink) const override {
    sink.Add(ScaleStep{{lines_.data(), static_cast<int>(lines_.size())}});
  }

 private:
  std::vector<NormalizeChannel> exact_;  ///< slope in `scale`, offset in `mean`
  std::vector<ValueLine> lines_;
};

Status CompileNormalize(const plan::OpStep& step, ProgramBuilder& builder) {
  const auto normalize = NormalizeOptions::FromJson(step.options);
  const auto channels = NormalizeChannels(normalize, builder.shape().channels);
  if (!channels.ok()) return plan::WrongOp(step.key, MessageOf(channels.status()));
  builder.Shared<ScaledChannels>().Add(*channels, builder.shape().in_depth ? -0.0 : 0.0);
  for (int c = 0; c < builder.shape().channels; ++c) {
    builder.AddExact(c, NormalizeStep{(*channels)[static_cast<std::size_t>(c)]});
  }
  return absl::OkStatus();
}

// gaussian_blur, gaussian_noise

/// Quotient of two neighbouring weights: exp(1 / (2 sigma^2)).
double SigmaOf(const PatchBlur& blur) {
  const auto middle = static_cast<std::size_t>(blur.radius);
  return std::sqrt(0.5 / std::log(double{blur.weight[middle]} / blur.weight[middle - 1]));
}

Status CompileGaussianBlur(const plan::OpStep& step, ProgramBuilder& builder) {
  const ProgramShape& shape = builder.shape();
  const Extent& patch = shape.patch;
  BlurStep made;
  // An axis of one voxel has no neighbours to sum; images are blurred along both of theirs.
  made.along[0] = shape.in_depth && patch.z > 1;
  made.along[1] = !shape.in_depth || patch.y > 1;
  made.along[2] = !shape.in_depth || patch.x > 1;
  if (!made.along[0] && !made.along[1] && !made.along[2]) return absl::OkStatus();
  builder.Add(
      [made, occurrence = plan::Occurrence(step),
       options = GaussianBlurOptions::FromJson(step.options)](const PatchDraw& draw,
                                                              StepSink& sink) {
        BlurStep own = made;
        own.blur = DrawBlur(options, draw.KeyOf(occurrence));
        if (own.blur.radius == 0) return;
        if (draw.said != nullptr) Say(draw, "blur, sigma ", Digits(SigmaOf(own.blur), 2), " px");
        sink.AddWhole(own);
      },
      true);
  return absl::OkStatus();
}

Status CompileGaussianNoise(const plan::OpStep& step, ProgramBuilder& builder) {
  builder.Add([occurrence = plan::Occurrence(step),
               options = GaussianNoiseOptions::FromJson(step.options),
               white = builder.shape().White()](const PatchDraw& draw, StepSink& sink) {
    const PatchNoise noise = DrawNoise(options, draw.KeyOf(occurrence), white);
    if (!(noise.std > 0)) return;
    Say(draw, "noise, std ", Digits(noise.std, 3));
    sink.Add(noise);
  });
  return absl::OkStatus();
}

// brightness, contrast, low_resolution, gamma

/// Word 0 of the op's first block: whether; word 1 is the parameter's.
template <typename Options>
std::optional<std::uint32_t> DrawnWord(const PatchDraw& draw, std::uint32_t occurrence,
                                       const Options& options) {
  const PhiloxBlock block = Draw(draw.KeyOf(occurrence), 0);
  if (!(UniformFloat(block.word[0]) < options.p)) return std::nullopt;
  return block.word[1];
}

/// Calls add(factor, sink) with what is drawn, unless it is 1.
template <typename Options, typename Add>
void CompileFactor(const plan::OpStep& step, const char* name, bool keeps, ProgramBuilder& builder,
                   const Add& add) {
  builder.Add(
      [add, name, occurrence = plan::Occurrence(step), options = Options::FromJson(step.options)](
          const PatchDraw& draw, StepSink& sink) {
        const auto word = DrawnWord(draw, occurrence, options);
        if (!word) return;
        const auto factor = static_cast<float>(DrawnAroundOne(options.factor, *word));
        if (factor == 1) return;
        Say(draw, name, " ", Digits(factor, 2));
        add(factor, sink);
      },
      keeps);
}

Status CompileBrightness(const plan::OpStep& step, ProgramBuilder& builder) {
  CompileFactor<BrightnessOptions>(
      step, "brightness", false, builder,
      [](float factor, StepSink& sink) { sink.Add(FreeLine(factor, 0)); });
  return absl::OkStatus();
}

Status CompileContrast(const plan::OpStep& step, ProgramBuilder& builder) {
  CompileFactor<ContrastOptions>(step, "contrast", true, builder, [](float factor, StepSink& sink) {
    sink.AddWhole(ContrastStep{factor});
  });
  return absl::OkStatus();
}

Status CompileLowResolution(const plan::OpStep& step, ProgramBuilder& builder) {
  builder.Add(
      [patch = builder.shape().patch, occurrence = plan::Occurrence(step),
       options = LowResolutionOptions::FromJson(step.options)](const PatchDraw& draw,
                                                               StepSink& sink) {
        const auto word = DrawnWord(draw, occurrence, options);
        if (!word) return;
        const double zoom = Drawn(options.zoom, *word);
        const auto side = [zoom](std::int64_t whole) {
          return std::max<std::int64_t>(1, std::llround(static_cast<double>(whole) * zoom));
        };
        const Extent size(side(patch.z), side(patch.y), side(patch.x));
        if (size == patch) return;
        Say(draw, "low resolution, ", size.ToString());
        sink.AddWhole(CoarseStep{size});
      },
      true);
  return absl::OkStatus();
}

Status CompileGamma(const plan::OpStep& step, ProgramBuilder& builder) {
  builder.Add(
      [occurrence = plan::Occurrence(step), options = GammaOptions::FromJson(step.options)](
          const PatchDraw& draw, StepSink& sink) {
        const auto word = DrawnWord(draw, occurrence, options);
        if (!word) return;
        const double exponent = DrawnAroundOne(options.gamma, *word);
        Say(draw, "gamma ", Digits(exponent, 2));
        sink.AddWhole(GammaStep{exponent, options.retain_stats, options.invert});
      },
      true);
  return absl::OkStatus();
}

// cast

Status CompileCast(const plan::OpStep& step, ProgramBuilder& builder) {
  CastStep cast;
  PB_ASSIGN_OR_RETURN(cast.to, CastTarget(CastOptions::FromJson(step.options).dtype));
  builder.Add([cast](const PatchDraw&, StepSink& sink) { sink.Add(cast); });
  for (int c = 0; c < builder.shape().channels; ++c) builder.AddExact(c, cast);
  return absl::OkStatus();
}

/// Every op that changes values, in the order in which a volume's are applied; those of images are
/// applied as plan::SortOps has them.
constexpr struct {
  plan::OpNumber op;
  Status (*compile)(const plan::OpStep& step, ProgramBuilder& builder);
} kOps[] = {
    {IccToSrgbOptions::kNumber, CompileIcc},
    {kStainNormalize, CompileStainNormalize},
    {StainJitterOptions::kNumber, CompileStainJitter},
    {HedJitterOptions::kNumber, CompileHedJitter},
    {ColorJitterOptions::kNumber, CompileColorJitter},
    {WindowOptions::kNumber, CompileWindow},
    {CtNormalizeOptions::kNumber, CompileCtNormalize},
    {ZscoreOptions::kNumber, CompileZscore},
    {NormalizeOptions::kNumber, CompileNormalize},
    {GaussianNoiseOptions::kNumber, CompileGaussianNoise},
    // Blur is linear: brightness may come before it.
    {BrightnessOptions::kNumber, CompileBrightness},
    {GaussianBlurOptions::kNumber, CompileGaussianBlur},
    {ContrastOptions::kNumber, CompileContrast},
    {LowResolutionOptions::kNumber, CompileLowResolution},
    {GammaOptions::kNumber, CompileGamma},
    {CastOptions::kNumber, CompileCast},
};

auto RowOf(plan::OpNumber op) {
  return std::find_if(std::begin(kOps), std::end(kOps),
                      [op](const auto& each) { return each.op == op; });
}

}  // namespace

Status CompileSteps(std::vector<plan::OpStep> steps, ProgramBuilder& builder) {
  if (builder.shape().in_depth) {
    std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
      return RowOf(a.op->number) < RowOf(b.op->number);
    });
    const bool toned = std::any_of(steps.begin(), steps.end(), [](const plan::OpStep& step) {
      return RowOf(step.op->number) <= RowOf(NormalizeOptions::kNumber);
    });
    // As every volume's values went through one line, a zero has no sign.
    if (!toned) builder.Add([](const PatchDraw&, StepSink& sink) { sink.Add(ValueLine{}); });
  }
  for (const plan::OpStep& step : steps) {
    const auto* const row = RowOf(step.op->number);
    if (row == std::end(kOps)) {
      return absl::InternalError(StrCat("compile ops: ", step.key, ": it moves pixels"));
    }
    PB_RETURN_IF_ERROR(row->compile(step, builder));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::ops
