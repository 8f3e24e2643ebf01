// Every op of a run's lists that changes values, as typed steps: of images and of volumes. Compiled
// once; a patch draws its own. A part of chain.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/chain/image_colours.h"
#include "ops/chain/patch_steps.h"
#include "runtime/core/dtype.h"
#include "runtime/core/extent.h"
#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"
#include "runtime/model/ops/volume_facts.h"

namespace patchbay::ops {

/// Source of the draws for the values of a patch.
struct PatchDraw {
  DrawKey key;
  ImageColours colours;
  plan::VolumeFacts facts;
  std::vector<std::string>* said = nullptr;  ///< receives what is drawn, in words; may be null

  /// The key of one op's parameters.
  DrawKey KeyOf(std::uint32_t occurrence) const {
    DrawKey own = key;
    own.op_occurrence = occurrence;
    own.stream = DrawStream::kParameters;
    return own;
  }
};

/// Receives what a patch draws.
class StepSink {
 public:
  void Add(const PointStep& step) { steps_.emplace_back(step); }
  /// At most one of a maker that may keep the patch.
  void AddWhole(decltype(WholeStep::step) step) { steps_.emplace_back(WholeStep{step, slot_}); }

 private:
  friend class ChainProgram;
  std::vector<PatchStep> steps_;
  int slot_ = -1;  ///< of the maker that draws
};

/// One op, or several that come to one, compiled. Immutable once the program is.
class StepMaker {
 public:
  virtual ~StepMaker() = default;
  /// A pure function of `draw`.
  virtual void Draw(const PatchDraw& draw, StepSink& sink) const = 0;
};

/// What ops are compiled for.
struct ProgramShape {
  Extent patch;
  int channels = 3;
  DType source = DType::kUint8;
  bool in_depth = false;         ///< a chain of volumes
  bool samples_between = false;  ///< its pixels may come from between those of the source

  /// What white is in the source's type: 1 in gaussian_noise, OD 0 in the stain ops. Volumes have
  /// none: their noise is in units of the normalised values.
  double White() const;
};

/// Immutable once compiled; safe to share between threads.
class ChainProgram {
 public:
  /// Of steps that passed plan::CheckOps, without those that move pixels. InvalidArgument for an op
  /// that the source's type or channels cannot have; names its key.
  static StatusOr<ChainProgram> Compile(const std::vector<plan::OpStep>& steps,
                                        const ProgramShape& shape);

  /// The steps of one patch: a pure function of its argument.
  std::vector<PatchStep> Draw(const PatchDraw& draw) const;
  /// Whether values are float from step to step. Where every op is of a value alone, and pixels
  /// move as they are, they are double from op to op: one step, of which uint8 has tables.
  bool in_float() const { return in_float_; }
  /// That step of one value of channel `c`.
  double Exactly(double value, int c) const;

  /// Reductions and neighbourhoods that a patch may have, at most.
  int whole_steps() const { return whole_steps_; }
  /// Point-wise steps, likewise.
  std::size_t most_point_steps() const { return parts_.size() + 1; }
  /// Values that the steps of all patches refer to, at most.
  std::size_t shared_bytes() const {
    return in_float_ ? exact_.size() * sizeof(ValueLine) : exact_list_.size() * sizeof(PointStep);
  }
  /// The image's fit must be there, the one of the profile, and the reference.
  bool needs_fit() const { return has_fit_ != nullptr; }
  bool HasFit(const ImageColours& colours) const { return !has_fit_ || has_fit_(colours); }

 private:
  friend class ProgramBuilder;

  struct Part {
    std::shared_ptr<const StepMaker> maker;
    int slot = -1;  ///< of its reduction or neighbourhood
  };
  std::vector<Part> parts_;
  std::vector<std::vector<PointStep>> exact_;  ///< of each channel
  std::vector<PointStep> exact_list_;          ///< the same, one after another
  std::function<bool(const ImageColours&)> has_fit_;
  bool in_float_ = false;
  int whole_steps_ = 0;
};

/// A program in the making: ops add what they come to.
class ProgramBuilder {
 public:
  ProgramBuilder(ChainProgram& program, const ProgramShape& shape)
      : program_(program), shape_(shape) {
    program_.exact_.resize(static_cast<std::size_t>(shape.channels));
  }

  const ProgramShape& shape() const { return shape_; }
  /// `draw(const PatchDraw&, StepSink&)`; `keeps`: it may add a reduction or a neighbourhood.
  template <typename Drawn>
  void Add(Drawn draw, bool keeps = false) {
    struct Maker : StepMaker {
      explicit Maker(Drawn d) : drawn(std::move(d)) {}
      void Draw(const PatchDraw& draw, StepSink& sink) const override { drawn(draw, sink); }
      Drawn drawn;
    };
    program_.parts_.push_back(
        {std::make_shared<const Maker>(std::move(draw)), keeps ? program_.whole_steps_++ : -1});
  }
  /// The maker of several ops: the first of them adds it.
  template <typename Maker>
  Maker& Shared() {
    for (const auto& part : program_.parts_) {
      // Only the builder changes a maker, until the program is done.
      if (const auto* own = dynamic_cast<const Maker*>(part.maker.get())) {
        return const_cast<Maker&>(*own);  // NOLINT
      }
    }
    auto made = std::make_shared<Maker>();
    program_.parts_.push_back({made, -1});
    return *made;
  }
  /// The form in double of channel `c`.
  void AddExact(int c, const PointStep& step) {
    program_.exact_[static_cast<std::size_t>(c)].push_back(step);
  }
  void NeedFit(std::function<bool(const ImageColours&)> has_fit) {
    program_.has_fit_ = std::move(has_fit);
  }

 private:
  ChainProgram& program_;
  const ProgramShape shape_;
};

}  // namespace patchbay::ops
