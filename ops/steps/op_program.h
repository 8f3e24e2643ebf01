// Ops compiled: each adds to the program of a chain, of images or of volumes, its steps or what it
// does to the geometry. A program is compiled once; a patch draws its own steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/geometry/blur.h"
#include "ops/geometry/image_moves.h"
#include "ops/geometry/volume_moves.h"
#include "ops/steps/step_forms.h"
#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/core/strings.h"  // wide: the one header that an op's compile needs
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/stain_fit.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

class IccLookup;

/// The facts about a patch's image that the colour ops need. A view: the pointed-to values must
/// outlive the call that takes it.
struct ImageColours {
  ImageColours() = default;
  /// For an image that has only a Macenko fit.
  ImageColours(const plan::MacenkoFit* fit)  // NOLINT(google-explicit-constructor)
      : macenko(fit) {}

  const plan::MacenkoFit* macenko = nullptr;    ///< for stain_normalize: macenko/cucim
  const plan::ReinhardFit* reinhard = nullptr;  ///< for stain_normalize: reinhard
  /// For icc_to_srgb; null: the image has no profile, its colours are sRGB as they are.
  const IccLookup* icc = nullptr;
  /// For stain_normalize: index of the reference that the image is mapped to.
  std::uint32_t stain_reference = 0;
};

/// The input of the draws of a patch: key and image facts.
struct PatchDraw {
  DrawKey key;
  ImageColours colours;
  plan::VolumeFacts facts;
  std::vector<std::string>* said = nullptr;  ///< receives the draws as text; may be null

  /// The key of one op's parameters.
  DrawKey KeyOf(std::uint32_t occurrence) const { return ParameterKey(key, occurrence); }
  /// Word 1 of the op's first block if word 0 decides, with probability `p`, that the op is
  /// applied; else nullopt.
  std::optional<std::uint32_t> WordIf(double p, std::uint32_t occurrence) const;

  template <typename... Parts>
  void Say(const Parts&... parts) const {
    if (said != nullptr) said->push_back(StrCat(parts...));
  }
};

/// "1.25".
std::string Digits(double value, int digits);

// Neighbourhoods: steps whose values come from several pixels of the patch.

/// Weighted sums along axes: x, then y, then z.
struct BlurStep {
  static constexpr WholeForm kForm = WholeForm::kBlur;
  PatchBlur blur;
  bool along[3] = {};  ///< z, y and x; never none
};

/// Down to `size` by the nearest voxel, up again between voxels.
struct CoarseStep {
  static constexpr WholeForm kForm = WholeForm::kCoarse;
  Extent size;
};

/// The address identifies the type of a step.
template <typename Step>
inline constexpr char kStepType = 0;

/// Receives the steps that a patch draws.
class StepSink {
 public:
  /// Adds a step of a type that the chain lists. A maker that may keep the patch adds at most one
  /// reduction or neighbourhood, other makers none.
  template <typename Step>
  void Add(const Step& step) {
    Take(&kStepType<Step>, &step);
  }

 protected:
  ~StepSink() = default;

 private:
  virtual void Take(const void* type, const void* step) = 0;
};

/// One op, or several ops composed into one, compiled. Immutable once the program is.
class StepMaker {
 public:
  virtual ~StepMaker() = default;
  /// A pure function of `draw`.
  virtual void Draw(const PatchDraw& draw, StepSink& sink) const = 0;
};

/// The shape of patches and type of images that ops are compiled for.
struct ProgramShape {
  Extent patch;
  int channels = 3;
  DType source = DType::kUint8;
  bool in_depth = false;  ///< a chain of volumes

  /// White in the source's type: 1 in gaussian_noise, OD 0 in the stain ops. Volumes have
  /// none: their noise is in units of the normalised values.
  double White() const;
};

/// A program in the making: ops add their steps.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const ProgramShape& shape)
      : shape_(shape),
        images_(shape.patch),
        volumes_(shape.patch),
        exact_(static_cast<std::size_t>(shape.channels)) {}

  const ProgramShape& shape() const { return shape_; }
  /// Receives ops that move pixels, unless `in_depth`.
  ImageMoves& images() { return images_; }
  /// Receives ops that move voxels, if `in_depth`.
  VolumeMoves& volumes() { return volumes_; }
  /// `draw(const PatchDraw&, StepSink&)`; `keeps`: it may add a reduction or a neighbourhood.
  template <typename Drawn>
  void Add(Drawn draw, bool keeps = false) {
    struct Maker : StepMaker {
      explicit Maker(Drawn d) : drawn(std::move(d)) {}
      void Draw(const PatchDraw& draw, StepSink& sink) const override { drawn(draw, sink); }
      Drawn drawn;
    };
    parts_.push_back({std::make_shared<const Maker>(std::move(draw)), keeps ? whole_steps_++ : -1});
  }
  /// One step, the same for every patch.
  template <typename Step>
  void AddFixed(const Step& step) {
    Add([step](const PatchDraw&, StepSink& sink) { sink.Add(step); });
  }
  /// The shared maker of several ops; the first of them adds it.
  template <typename Maker>
  Maker& Shared() {
    for (const auto& part : parts_) {
      // Only the builder changes a maker, until the program is done.
      if (const auto* own = dynamic_cast<const Maker*>(part.maker.get())) {
        return const_cast<Maker&>(*own);  // NOLINT
      }
    }
    auto made = std::make_shared<Maker>();
    parts_.push_back({made, -1});
    return *made;
  }
  /// The form in double of channel `c`.
  template <typename Step>
  void AddExact(int c, const Step& step) {
    exact_[static_cast<std::size_t>(c)].push_back([step](StepSink& sink) { sink.Add(step); });
  }
  /// `check` refuses the colours of an image that lack what its patches need.
  void CheckColours(std::function<Status(const ImageColours&)> check) {
    check_colours_ = std::move(check);
  }

 private:
  friend class ChainProgram;

  struct Part {
    std::shared_ptr<const StepMaker> maker;
    int slot = -1;  ///< slot of its reduction or neighbourhood
  };
  const ProgramShape shape_;
  ImageMoves images_;
  VolumeMoves volumes_;
  std::vector<Part> parts_;
  std::vector<std::vector<std::function<void(StepSink&)>>> exact_;  ///< steps of each channel
  std::function<Status(const ImageColours&)> check_colours_;
  int whole_steps_ = 0;
};

}  // namespace patchbay::ops
