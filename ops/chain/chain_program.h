// Every op of a run's lists, as typed steps and the geometry: of images and of volumes. Compiled
// once; a patch draws its own. A part of chain.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "ops/chain/patch_steps.h"
#include "ops/intensity/channel_steps.h"
#include "ops/intensity/tone_math.h"
#include "ops/steps/op_program.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_list.h"

namespace patchbay::ops {

/// Immutable once compiled; safe to share between threads.
class ChainProgram {
 public:
  /// Compiles steps that passed plan::CheckOps. InvalidArgument,
  /// naming the key, for an op that does not support the source's type or channels.
  static StatusOr<ChainProgram> Compile(std::vector<plan::OpStep> steps, const ProgramShape& shape);

  /// The steps of one patch: a pure function of its argument.
  std::vector<PatchStep> Draw(const PatchDraw& draw) const;
  /// Whether values are float between steps. If every op maps single values and pixels move
  /// unchanged, values are double between ops, and the ops are one step, for which uint8 has
  /// tables.
  bool in_float() const { return in_float_; }
  /// Applies that step to one value of channel `c`.
  double Exactly(double value, int c) const;

  /// The geometry of patches: of images, or of a chain of volumes.
  const ImageMoves& images() const { return images_; }
  const VolumeMoves& volumes() const { return volumes_; }

  /// The most reductions and neighbourhoods that a patch may have.
  int whole_steps() const { return whole_steps_; }
  /// Point-wise steps, likewise.
  std::size_t most_point_steps() const {
    // An op whose step differs from channel to channel adds several, each for a few of them.
    constexpr int kFewest = ChannelSteps<LineWithin>::kMost;
    const int most = (channels_ + kFewest - 1) / kFewest;
    return parts_.size() * static_cast<std::size_t>(most) + 1;
  }
  /// Values that the steps of all patches refer to, at most.
  std::size_t shared_bytes() const {
    return in_float_ ? static_cast<std::size_t>(channels_) * sizeof(ValueLine)
                     : exact_.size() * sizeof(AnyPointStep);
  }
  /// Whether patches need a stain fit of their image.
  bool needs_fit() const { return check_colours_ != nullptr; }
  /// InvalidArgument when it is missing, or the reference is.
  Status CheckFit(const ImageColours& colours) const {
    return check_colours_ ? check_colours_(colours) : absl::OkStatus();
  }

 private:
  explicit ChainProgram(ProgramBuilder builder);
  ExactStep Exact() const;

  ImageMoves images_;
  VolumeMoves volumes_;
  std::vector<ProgramBuilder::Part> parts_;
  std::vector<AnyPointStep> exact_;  ///< steps of each channel, one after another
  int channels_ = 0;
  bool in_float_ = false;
  int whole_steps_ = 0;
  std::function<Status(const ImageColours&)> check_colours_;
};

}  // namespace patchbay::ops
