#include "ops/zscore/zscore.h"

namespace patchbay::ops {

std::vector<plan::Option<ZscoreOptions>> ZscoreOptions::Table() {
  using O = ZscoreOptions;
  return {plan::OptionOf(
      &O::over, {.name = "over",
                 .choices = {"body"},
                 .help = "the voxels that count: those of the body, without table and air"})};
}

plan::OpRow DescribeZscore() {
  return {.number = ZscoreOptions::kNumber,
          .keys = plan::KeysOf<ZscoreOptions>(
              "zscore",
              "(x - mean) / std of the windowed values of the whole volume, as ingest counted "
              "them; volumes; not with ct_normalize or normalize"),
          .needs = {.once = true, .body = true},
          .axes = plan::OpAxes::kVolume,
          .scale = plan::OpScale::kNormalised};
}

}  // namespace patchbay::ops
