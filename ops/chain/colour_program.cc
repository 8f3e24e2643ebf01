#include "ops/chain/colour_program.h"

#include <algorithm>
#include <iterator>

#include "ops/cast/cast.h"
#include "ops/normalize/normalize.h"
#include "ops/stain_normalize/reinhard.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/cast.h"

namespace patchbay::ops {
namespace {

/// What white is in a type: 1 in gaussian_noise, OD 0 in the stain ops.
double WhiteOf(DType dtype) {
  switch (dtype) {
    case DType::kUint16:
      return 65'535;
    case DType::kInt16:
      return 32'767;
    case DType::kFloat32:
      return 1;
    default:
      return 255;
  }
}

DrawKey OwnKey(const DrawKey& key, std::uint32_t occurrence) {
  DrawKey own = key;
  own.op_occurrence = occurrence;
  own.stream = DrawStream::kParameters;
  return own;
}

template <typename Options>
DrawnOp<Options> DrawnOpOf(const plan::OpStep& step) {
  return {plan::Occurrence(step), Options::FromJson(step.options)};
}

Status OnlyBytes(const plan::OpStep& step, DType source) {
  return plan::WrongOp(step.key, StrCat("needs images of uint8, not ", NameOf(source)));
}

Status CheckFitted(const plan::OpStep& step, const plan::StainNormalizeOptions& stain) {
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

}  // namespace

int PatchColour::StepsBeforeMean() const {
  if (!jitter || jitter->contrast == 1) return kColorSteps;
  const auto* contrast =
      std::find(jitter->order, jitter->order + kColorSteps, ColorStep::kContrast);
  return static_cast<int>(contrast - jitter->order);
}

ColourProgram::ColourProgram(int channels, DType source)
    : channels_(channels), source_(source), white_(WhiteOf(source)) {}

Status ColourProgram::Add(const plan::OpStep& step) {
  const plan::OpNeeds needs = plan::NeedsOf(step.op);
  if (needs.rgb && channels_ != 3) {
    return plan::WrongOp(step.key, StrCat("needs red, green and blue; the images have ", channels_,
                                          channels_ == 1 ? " channel" : " channels"));
  }
  if (needs.rgb && source_ == DType::kInt16) {
    return plan::WrongOp(step.key, "needs images of uint8, uint16 or float32 (0 to 1), not int16");
  }
  needs_pixels_ = needs_pixels_ || needs.rgb || needs.neighbours || needs.random;
  using plan::OpNumber;
  static constexpr struct {
    OpNumber op;
    Status (*add)(ColourProgram& program, const plan::OpStep& step);
  } kOps[] = {
      {OpNumber::kIccToSrgb,
       [](ColourProgram& p, const plan::OpStep& s) {
         p.converts_icc_ = true;
         return p.source_ == DType::kUint8 ? absl::OkStatus() : OnlyBytes(s, p.source_);
       }},
      {OpNumber::kStainNormalize,
       [](ColourProgram& p, const plan::OpStep& s) { return p.AddStainNormalize(s); }},
      {OpNumber::kStainJitter,
       [](ColourProgram& p, const plan::OpStep& s) {
         p.stain_jitters_.push_back(DrawnOpOf<plan::StainJitterOptions>(s));
         return absl::OkStatus();
       }},
      {OpNumber::kHedJitter,
       [](ColourProgram& p, const plan::OpStep& s) {
         p.hed_jitters_.push_back(DrawnOpOf<plan::HedJitterOptions>(s));
         return absl::OkStatus();
       }},
      {OpNumber::kColorJitter,
       [](ColourProgram& p, const plan::OpStep& s) {
         p.color_jitter_ = DrawnOpOf<plan::ColorJitterOptions>(s);
         return absl::OkStatus();
       }},
      {OpNumber::kGaussianBlur,
       [](ColourProgram& p, const plan::OpStep& s) {
         p.blur_ = DrawnOpOf<plan::GaussianBlurOptions>(s);
         return absl::OkStatus();
       }},
      {OpNumber::kGaussianNoise,
       [](ColourProgram& p, const plan::OpStep& s) {
         p.noise_ = DrawnOpOf<plan::GaussianNoiseOptions>(s);
         return absl::OkStatus();
       }},
      {OpNumber::kNormalize,
       [](ColourProgram& p, const plan::OpStep& s) { return p.AddNormalize(s); }},
      {OpNumber::kCast,
       [](ColourProgram& p, const plan::OpStep& s) -> Status {
         const DType dtype = plan::CastOptions::FromJson(s.options).dtype;
         PB_ASSIGN_OR_RETURN(p.casts_.emplace_back(), CastTarget(dtype));
         return absl::OkStatus();
       }},
  };
  const auto* row = std::find_if(std::begin(kOps), std::end(kOps),
                                 [&step](const auto& each) { return each.op == step.op; });
  if (row != std::end(kOps)) return row->add(*this, step);
  return absl::InternalError(StrCat("compile ops: ", step.key, ": it moves pixels"));
}

Status ColourProgram::AddStainNormalize(const plan::OpStep& step) {
  stain_ = plan::StainNormalizeOptions::FromJson(step.options);
  PB_RETURN_IF_ERROR(CheckFitted(step, *stain_));
  if (stain_->profile == plan::StainProfile::kMacenkoCucim) {
    macenko_references_ = stain_->MacenkoReferences();
  } else {
    reinhard_references_ = stain_->ReinhardReferences();
  }
  return absl::OkStatus();
}

Status ColourProgram::AddNormalize(const plan::OpStep& step) {
  const auto normalize = plan::NormalizeOptions::FromJson(step.options);
  const auto channels = NormalizeChannels(normalize, channels_);
  if (!channels.ok()) return plan::WrongOp(step.key, MessageOf(channels.status()));
  scaled_.resize(channels->size(), {1, 0, 1});
  slopes_.resize(channels->size());
  offsets_.resize(channels->size());
  for (std::size_t c = 0; c < scaled_.size(); ++c) {
    const NormalizeChannel& k = (*channels)[c];
    double& slope = scaled_[c].scale;
    double& offset = scaled_[c].mean;
    slope = slope / k.scale / k.std;
    offset = (offset / k.scale - k.mean) / k.std;
    slopes_[c] = static_cast<float>(slope);
    offsets_[c] = static_cast<float>(offset);
  }
  return absl::OkStatus();
}

bool ColourProgram::HasFit(const ImageColours& colours) const {
  if (!stain_) return true;
  if (colours.stain_reference >= stain_->ReferenceCount()) return false;
  return MapsOd() ? colours.macenko != nullptr : colours.reinhard != nullptr;
}

OdStep ColourProgram::DrawOd(const DrawKey& key, const ImageColours& colours) const {
  const plan::MacenkoFit reference =
      MapsOd() ? macenko_references_[colours.stain_reference] : plan::DefaultMacenko();
  const plan::MacenkoFit* const fit = colours.macenko;
  OdStep step;
  if (MapsOd() && fit != nullptr) step = StainNormalizeStep(*fit, reference);
  for (const auto& jitter : stain_jitters_) {
    const DrawKey own = OwnKey(key, jitter.occurrence);
    step = DrawStainJitter(jitter.options, reference, own).After(step);
  }
  for (const auto& jitter : hed_jitters_) {
    step = DrawHedJitter(jitter.options, OwnKey(key, jitter.occurrence)).After(step);
  }
  return step;
}

PatchColour ColourProgram::Draw(const DrawKey& key, const ImageColours& colours) const {
  PatchColour colour;
  if (converts_icc_) colour.icc = colours.icc;
  const OdStep od = DrawOd(key, colours);
  if (MapsOd() || !od.IsIdentity()) {
    colour.od = OdMapOf(od, MapsOd() ? plan::kStainWhite : 255.0, white_);
  }
  if (stain_ && !MapsOd() && colours.reinhard != nullptr) {
    colour.lab = LabMapOf(*colours.reinhard, reinhard_references_[colours.stain_reference], white_);
  }
  if (color_jitter_) {
    colour.jitter = DrawColorJitter(color_jitter_->options, OwnKey(key, color_jitter_->occurrence));
  }
  if (blur_) colour.blur = DrawBlur(blur_->options, OwnKey(key, blur_->occurrence));
  if (noise_) colour.noise = DrawNoise(noise_->options, OwnKey(key, noise_->occurrence), white_);
  return colour;
}

}  // namespace patchbay::ops
