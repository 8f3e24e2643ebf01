#include "ops/all_ops.h"

namespace patchbay::ops {

// Each is in the folder of its op.
plan::OpRow DescribeCrop(), DescribeFlip(), DescribeRotate90(), DescribeAffine(), DescribeElastic(),
    DescribeIccToSrgb(), DescribeStainNormalize(), DescribeStainJitter(), DescribeHedJitter(),
    DescribeColorJitter(), DescribeWindow(), DescribeCtNormalize(), DescribeZscore(),
    DescribePercentile(), DescribeGaussianBlur(), DescribeGaussianNoise(), DescribeBrightness(),
    DescribeContrast(), DescribeLowResolution(), DescribeGamma(), DescribePosterize(),
    DescribeNormalize(), DescribeCast();

const plan::OpTable& Table() {
  static const plan::OpTable table(
      {DescribeCrop(),           DescribeFlip(),        DescribeRotate90(),
       DescribeAffine(),         DescribeElastic(),     DescribeIccToSrgb(),
       DescribeStainNormalize(), DescribeStainJitter(), DescribeHedJitter(),
       DescribeColorJitter(),    DescribeWindow(),      DescribeCtNormalize(),
       DescribeZscore(),         DescribePercentile(),  DescribeGaussianBlur(),
       DescribeGaussianNoise(),  DescribeBrightness(),  DescribeContrast(),
       DescribeLowResolution(),  DescribeGamma(),       DescribePosterize(),
       DescribeNormalize(),      DescribeCast()});
  return table;
}

}  // namespace patchbay::ops
