// Forms of steps that ops make: plain structs, which kernels take too. Kernels include it as C++17.
#pragma once

namespace patchbay {
struct Digest;
}

namespace patchbay::ops {

/// Values of one channel of a row that a thread of a GPU makes together: kRun of them, kRunStep
/// columns apart. A group of runs is a stretch of the row.
inline constexpr int kRun = 8, kRunStep = 16, kRunGroup = kRun * kRunStep;

/// The form of a point-wise step: the function that is declared with its struct, a template on the
/// lane type V. A struct without `kForm` maps single values.
enum class StepForm : int {
  kValue,     ///< V Applied(step, V x)
  kOneByOne,  ///< the same, with a V of one value
  kRgb,       ///< void Apply(step, V (&rgb)[3])
  kPixels,    ///< the same on a GPU; on a CPU void ApplyToPixels(step, red, green, blue, width)
  kPlaced,    ///< needs the position of a value: ApplyPlaced<V>(step, row, width, stride, values),
              ///< and of a run on a GPU ApplyToRun(step, run, V* value, int next)
  kInDouble,  ///< only double Exactly(step, double x), declared by `kByValue`
};

/// The form of a step that keeps the patch: of reductions, by which members values follow from
/// those of the patch, and of neighbourhoods.
enum class WholeForm : int {
  kNone,
  /// The rgb step AboutGrey(mean), from the mean grey of the slice, whose values have white().
  kGrey,
  /// LineWithin LineOf(stats, c), from the statistics of channel c.
  kLine,
  /// With `invert` the values are negated first. Their statistics give a point-wise step,
  /// Curve CurveOf(before, c), which is applied. With `retain_stats` the statistics of the result
  /// give LineWithin LineAfter<Multiply>(before, after), which also restores the sign. Without it
  /// `invert` negates the values back.
  kCurve,
  kBlur,
  kCoarse,
};

/// Values that a step refers to as its `values`; they outlive the pass, on the device that runs it.
template <typename T>
struct StepValues {
  const T* at = nullptr;
  int count = 0;
};

/// Values that a step refers to as its `kept`, which a GPU keeps from one launch to the next.
template <typename T>
struct KeptValues {
  const T* at = nullptr;
  int count = 0;
  const Digest* digest = nullptr;  ///< digest of the values
};

}  // namespace patchbay::ops
