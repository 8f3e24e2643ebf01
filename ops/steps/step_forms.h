// Forms of point-wise steps: plain structs, which kernels take too. A struct without `kForm` maps
// single values. Kernels include it as C++17.
#pragma once

namespace patchbay::ops {

/// The function that is declared with the struct of a step, a template on the lane type V.
enum class StepForm : int {
  kValue,     ///< V Applied(step, V x)
  kOneByOne,  ///< the same, with a V of one value
  kRgb,       ///< void Apply(step, V (&rgb)[3])
  kPixels,    ///< the same on a GPU; on a CPU void ApplyToPixels(step, red, green, blue, width)
  kPlaced,    ///< needs the position of a value: ApplyPlaced<V>(step, row, width, stride, values)
  kInDouble,  ///< only double Exactly(step, double x), declared by `kByValue`
};

/// Values that a step refers to as its `values`; they outlive the pass, on the device that runs it.
template <typename T>
struct StepValues {
  const T* at = nullptr;
  int count = 0;
};

}  // namespace patchbay::ops
