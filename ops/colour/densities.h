// The map of optical densities that a patch's stain ops are composed into.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ops/colour/optical_density.h"
#include "ops/steps/op_program.h"
#include "runtime/model/ops/stain_fit.h"

namespace patchbay::ops {

/// The maker of the step that composes, in double, the ops that are linear in optical density.
class Densities : public StepMaker {
 public:
  using Normaliser = OdStep (*)(const plan::MacenkoFit& image, const plan::MacenkoFit& reference);
  /// Draws the step of a jitter for a patch; `basis` has the reference's stains.
  using Jitter = std::function<OdStep(const PatchDraw& draw, const plan::MacenkoFit& basis)>;

  static Densities& Of(ProgramBuilder& program);

  /// Adds, before the jitters, the map from the image's fit to its reference; an image without a
  /// fit stays as it is.
  void Normalise(std::vector<plan::MacenkoFit> references, Normaliser normaliser) {
    references_ = std::move(references);
    normaliser_ = normaliser;
  }
  /// Adds a jitter after those that were added before.
  void Add(Jitter jitter) { jitters_.push_back(std::move(jitter)); }

  void Draw(const PatchDraw& draw, StepSink& sink) const override;

 private:
  OdStep Composed(const PatchDraw& draw) const;

  std::vector<plan::MacenkoFit> references_;
  Normaliser normaliser_ = nullptr;
  std::vector<Jitter> jitters_;
  double white_ = 255;
};

/// Options of a jitter of stains.
struct StainDraws {
  double p = 0.5;
  double alpha = 0;  ///< each amount is multiplied by a number within 1 - alpha .. 1 + alpha
  double beta = 0;   ///< then a number within -beta .. beta is added, in natural optical density
};
/// Word 0 of the key's first block decides whether the jitter acts; words 1 to 3 are the factors of
/// the stains; words 0 to 2 of the second block are the offsets added to them. Row s of `unmix`
/// computes the amount of stain s in a density.
OdStep DrawStains(const StainDraws& options, std::span<const Vector3> stains,
                  std::span<const Vector3> unmix, const DrawKey& key);

}  // namespace patchbay::ops
