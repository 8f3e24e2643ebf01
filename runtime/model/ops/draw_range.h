// Common options of ops that draw: a probability, and ranges of parameters.
#pragma once

#include <array>
#include <string>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

/// Bounds of a parameter that is drawn uniformly, low first.
struct DrawRange {
  double low = 0, high = 0;

  bool operator==(const DrawRange&) const = default;
  /// Every draw gives `value`.
  bool Always(double value) const { return low == value && high == value; }
};

inline constexpr double kDefaultProbability = 0.5;

/// "p": the share of patches that the op changes.
config::Key ProbabilityKey();

/// A list of two numbers, low and high, or key.rows such lists; refused the wrong way round. `key`
/// has the name, unit, limits and help.
config::Key RangeKey(config::Key key, const DrawRange& fallback);

/// From a value that passed its table.
DrawRange RangeOf(const Json& options, const char* name);
/// The same of a key with three rows; a single range stands for all.
std::array<DrawRange, 3> RangesOf(const Json& options, const char* name);

}  // namespace patchbay::plan
