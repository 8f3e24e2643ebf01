// Draws from ranges: the options that ops which draw share.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/core/random.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/ops/op_options.h"

namespace patchbay::ops {

/// Bounds of a parameter that is drawn uniformly, low first.
struct DrawRange {
  double low = 0, high = 0;

  bool operator==(const DrawRange&) const = default;
  /// Whether every draw is `value`.
  bool Always(double value) const { return low == value && high == value; }
};

/// A range as an option: a list of two numbers; the first may not exceed the second.
void Describe(const DrawRange& range, config::Key& key);
void ReadValue(const Json& json, const config::Key& key, DrawRange& range);
/// Three such lists, or one that stands for all.
void Describe(const std::array<DrawRange, 3>& ranges, config::Key& key);
void ReadValue(const Json& json, const config::Key& key, std::array<DrawRange, 3>& ranges);

inline constexpr double kDefaultProbability = 0.5;

/// "p": the share of patches that the op changes.
template <typename Options>
plan::Option<Options> ProbabilityOption() {
  return plan::OptionOf(
      &Options::p,
      {.name = "p", .min = 0, .max = 1, .help = "probability that the op is applied to a patch"});
}

/// Uniform in the range, from 32 bits.
double Drawn(const DrawRange& range, std::uint32_t word);

/// Uniform in the range, from 32 bits; with 1 inside, half of the draws are below 1, as nnU-Net
/// draws.
double DrawnAroundOne(const DrawRange& range, std::uint32_t word);

}  // namespace patchbay::ops
