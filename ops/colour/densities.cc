#include "ops/colour/densities.h"

#include <string>

namespace patchbay::ops {
namespace {

void SayMap(const OdMap& map, const PatchDraw& draw) {
  if (draw.said == nullptr) return;
  std::string rows;
  for (std::size_t row = 0; row < 3; ++row) {
    for (const float value : map.matrix[row]) rows += StrCat(" ", Digits(value, 2));
    if (row < 2) rows += " |";
  }
  draw.Say("density", rows);
}

void AddOffset(Vector3& offset, const Vector3& stain, double amount) {
  for (std::size_t r = 0; r < 3; ++r) offset[r] += amount * stain[r];
}

/// Uniform from -bound to bound, from 32 bits.
double Symmetric(double bound, std::uint32_t word) {
  return bound * (2 * double{UniformFloat(word)} - 1);
}

}  // namespace

Densities& Densities::Of(ProgramBuilder& program) {
  auto& densities = program.Shared<Densities>();
  densities.white_ = program.shape().White();
  return densities;
}

void Densities::Draw(const PatchDraw& draw, StepSink& sink) const {
  const OdStep od = Composed(draw);
  const bool is_normalised = normaliser_ != nullptr && draw.colours.macenko != nullptr;
  if (!is_normalised && od.IsIdentity()) return;
  const OdMap map = OdMapOf(od, is_normalised ? plan::kStainWhite : 255.0, white_);
  SayMap(map, draw);
  sink.Add(map);
}

OdStep Densities::Composed(const PatchDraw& draw) const {
  const plan::MacenkoFit reference =
      normaliser_ != nullptr ? references_[draw.colours.stain_reference] : plan::DefaultMacenko();
  OdStep step;
  if (normaliser_ != nullptr && draw.colours.macenko != nullptr) {
    step = normaliser_(*draw.colours.macenko, reference);
  }
  for (const Jitter& jitter : jitters_) step = jitter(draw, reference).After(step);
  return step;
}

OdStep DrawStains(const StainDraws& options, std::span<const Vector3> stains,
                  std::span<const Vector3> unmix, const DrawKey& key) {
  const PhiloxBlock factors = patchbay::Draw(key, 0), shifts = patchbay::Draw(key, 1);
  OdStep step;
  if (!(UniformFloat(factors.word[0]) < options.p)) return step;
  for (std::size_t s = 0; s < stains.size(); ++s) {
    AddStain(step.matrix, stains[s], unmix[s], Symmetric(options.alpha, factors.word[1 + s]));
    AddOffset(step.offset, stains[s], Symmetric(options.beta, shifts.word[s]));
  }
  return step;
}

}  // namespace patchbay::ops
