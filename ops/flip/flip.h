// flip: mirrors the patch left-right and top-bottom, each with its own probability; volumes along
// the axes that are named. Exact.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/random.h"
#include "runtime/core/status.h"
#include "runtime/model/ops/op_options.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::ops {

struct FlipOptions {
  double horizontal = 0.5;  ///< probability of mirroring left-right
  double vertical = 0.5;    ///< probability of mirroring top-bottom
  /// A volume is mirrored along each of these, each with probability 0.5; empty: as the two above.
  std::vector<std::string> axes = {};

  bool by_axes() const { return !axes.empty(); }
  bool Has(std::string_view axis) const;
  Status Check() const;

  static constexpr plan::OpNumber kNumber{2};
  static std::vector<plan::Option<FlipOptions>> Table();
};

/// Whether to mirror left-right (horizontal) and top-bottom (vertical).
struct FlipParameters {
  bool horizontal = false, vertical = false;
  bool operator==(const FlipParameters&) const = default;
};

/// Words 0 and 1 of the key's first block decide horizontal and vertical.
FlipParameters DrawFlip(const FlipOptions& options, const DrawKey& key);

/// Words 0 to 2 of the key's first block decide z, y and x, or for a flip without axes words 0 and
/// 1 x and y, as in a 2-D image.
void DrawMirrors(const FlipOptions& options, const DrawKey& key, bool (&mirrored)[3]);

}  // namespace patchbay::ops
