// A stream's chain of ops, cut where its own functions run: pixels move, functions of pixels run,
// values are made, functions of values run, and values become those of the slot.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ops/chain/chain.h"
#include "runtime/model/ops/own_functions.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::workers {

/// Immutable; safe to share between threads. The parts of a chain draw what the whole draws.
class FunctionStages {
 public:
  /// The stages of a plan, whose chain is `whole`; without functions they are empty.
  static StatusOr<FunctionStages> Of(const plan::Plan& plan, const ops::Chain& whole);

  const std::vector<plan::OwnFunction>& functions() const { return functions_; }
  bool Has(plan::FunctionStage stage) const {
    return stage == plan::FunctionStage::kPixels ? pixels_.has_value() : values_.has_value();
  }

  /// Bytes of one patch in the array of a stage.
  std::size_t PatchBytes(plan::FunctionStage stage) const;

  /// The inputs of a patch in addition to its pixels.
  struct PatchInput {
    DrawKey key;
    ops::ImageColours colours;
    plan::VolumeFacts facts;
  };
  /// Makes the array of a stage, (depth, height, width, channels), from that of the stage before;
  /// for the first one from the source tile.
  Status Make(plan::FunctionStage stage, const ConstTensorView& source, const PatchInput& input,
              std::span<std::byte> out, std::vector<std::byte>& scratch) const;
  /// Whether the array of the pixels is the source tile, but for flips: MakeInPlace makes it of a
  /// tile that lies there.
  bool CanMakeInPlace(plan::FunctionStage stage, const DrawKey& key) const {
    return stage == plan::FunctionStage::kPixels && pixels_->OnlyMirrors(key);
  }
  void MakeInPlace(const DrawKey& key, std::span<std::byte> array,
                   std::vector<std::byte>& scratch) const {
    pixels_->RunInPlace(key, array, scratch);
  }
  /// Makes the finished patch from the array of the last stage.
  Status Finish(const ConstTensorView& source, const PatchInput& input, std::span<std::byte> out,
                std::vector<std::byte>& scratch) const;
  /// The array of a stage as the tensor it is.
  TensorView View(plan::FunctionStage stage, std::span<std::byte> array) const;

 private:
  std::vector<plan::OwnFunction> functions_;
  /// Up to the functions of pixels and of values; up to the slot.
  std::optional<ops::Chain> pixels_, values_, slot_;
  DType pixel_type_ = DType::kUint8;
};

}  // namespace patchbay::workers
