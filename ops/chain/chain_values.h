// The pointwise ops of a chain one value at a time, for source types that no table of 256 values
// describes. A part of chain.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "ops/cast/cast_math.h"
#include "ops/chain/patch_geometry.h"
#include "ops/normalize/normalize_math.h"
#include "runtime/core/dtype.h"

namespace patchbay::ops {

/// The ops in their order. A value is carried in double from op to op, then rounded once to float
/// and once to the output type: for uint8 this gives the table of the chain.
class ValueSteps {
 public:
  using Step = std::variant<std::vector<NormalizeChannel>, CastTo>;

  /// One entry a channel.
  void AddNormalize(std::vector<NormalizeChannel> channels);
  void AddCast(CastTo to);

  double Apply(double value, std::size_t channel) const;
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

/// Where the finished values of one slice go.
struct ValueTarget {
  std::byte* out = nullptr;        ///< the first element
  std::int64_t pixel_bytes = 0;    ///< from one pixel of a row to the next
  std::int64_t channel_bytes = 0;  ///< from one channel to the next
  CastTo to = CastTo::kFloat32;
};

/// Whether MakeValues reads that type: uint16, int16 or float32.
bool HasValuePath(DType dtype);

/// The whole window of one slice, from `source` of type `dtype`.
void MakeValues(const Strided& source, DType dtype, const WindowMap& window,
                const ValueSteps& steps, const ValueTarget& target);

}  // namespace patchbay::ops
