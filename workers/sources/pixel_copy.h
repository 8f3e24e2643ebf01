// Moving decoded samples into a patch, whatever its strides.
#pragma once

#include <cstdint>

#include "runtime/core/box.h"
#include "runtime/core/dtype.h"
#include "runtime/core/element.h"
#include "runtime/core/status.h"
#include "runtime/core/tensor_view.h"

namespace patchbay::workers {

/// `out` as (height, width, channels). InvalidArgument unless it is of the type and the box, with
/// or without its depth of 1.
StatusOr<TensorView> FlatPatchView(const TensorView& out, const Box& box, int channels,
                                   DType dtype = DType::kUint8);

/// InvalidArgument for a fill that is not a value of the type.
StatusOr<Element> FillElement(double fill, DType dtype = DType::kUint8);

/// InvalidArgument unless the box is 2-D, not empty, and within limits that keep sums of its
/// coordinates exact.
Status CheckPatchBox(const Box& box);

/// Every sample becomes `value`, of the view's type.
void FillPatch(const TensorView& out, const Element& value);

/// Rows of interleaved samples to be copied, of the type of the view they go to.
struct SampleRows {
  const std::uint8_t* data = nullptr;
  std::size_t stride_bytes = 0;
  std::int64_t height = 0, width = 0;
  int channels = 0;
  bool is_inverted = false;  ///< 0 means white
};

/// Copies to `out` at pixel (y, x), channels from `first_channel` on.
void CopySamples(const SampleRows& rows, const TensorView& out, std::int64_t y, std::int64_t x,
                 int first_channel);

/// Whether rows of interleaved samples can be written straight into `out`.
bool IsInterleaved(const TensorView& out);

}  // namespace patchbay::workers
