// How far label sets of the same images agree, pixel by pixel: the counts that workers make, and
// the measures of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"

namespace patchbay::results {

/// Most sets that are compared at once.
inline constexpr std::size_t kMaxComparedSets = 16;

/// Two sets of one image, by their places among those that were named.
struct PairCounts {
  std::size_t a = 0, b = 0;
  /// Pixels of each pair of classes: row by row of `a`'s class, among StoreAgreement::classes.
  std::vector<std::uint64_t> pixels = {};
  std::uint64_t only_a = 0, only_b = 0;  ///< pixels that one of them leaves without a class

  static constexpr auto Fields() {
    using T = PairCounts;
    return AsFullObject(Field("a", &T::a), Field("b", &T::b), Field("pixels", &T::pixels),
                        Field("only_a", &T::only_a), Field("only_b", &T::only_b));
  }
};

/// Every pair of the sets of one store.
struct StoreAgreement {
  std::vector<std::string> classes = {};  ///< classes of all its sets, by value
  std::vector<PairCounts> pairs = {};

  static constexpr auto Fields() {
    using T = StoreAgreement;
    return AsFullObject(Field("classes", &T::classes), Field("pairs", &T::pairs));
  }
};

/// The weight of a disagreement in kappa: every one alike, or by the distance of the classes.
enum class KappaWeights : std::uint8_t { kNone, kLinear, kQuadratic };

/// Measures over the pixels to which both sets give a class.
struct Agreement {
  std::uint64_t pixels = 0;
  std::optional<double> share;  ///< pixels with the same class in both, 0 to 1
  std::optional<double> kappa;  ///< Cohen's; none where both have one and the same class
  std::vector<std::optional<double>> dice;  ///< by class; none where neither set has it
};

/// `pixels`: a square table of `classes` rows.
Agreement AgreementOf(const std::vector<std::uint64_t>& pixels, std::size_t classes,
                      KappaWeights weights);

/// Adds the counts of another store, whose classes may be others: `classes` and every table of
/// `pairs` grow. InvalidArgument for tables of another shape, or other pairs.
Status AddAgreement(const StoreAgreement& other, StoreAgreement& sum);

}  // namespace patchbay::results
