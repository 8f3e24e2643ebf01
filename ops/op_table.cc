#include "ops/op_table.h"

#include "ops/affine/affine.h"
#include "ops/brightness/brightness.h"
#include "ops/cast/cast.h"
#include "ops/color_jitter/color_jitter.h"
#include "ops/contrast/contrast.h"
#include "ops/crop/crop.h"
#include "ops/ct_normalize/ct_normalize.h"
#include "ops/elastic/elastic.h"
#include "ops/flip/flip.h"
#include "ops/gamma/gamma.h"
#include "ops/gaussian_blur/gaussian_blur.h"
#include "ops/gaussian_noise/gaussian_noise.h"
#include "ops/hed_jitter/hed_jitter.h"
#include "ops/icc_to_srgb/icc_to_srgb.h"
#include "ops/low_resolution/low_resolution.h"
#include "ops/normalize/normalize.h"
#include "ops/rotate90/rotate90.h"
#include "ops/stain_jitter/stain_jitter.h"
#include "ops/stain_normalize/stain_normalize.h"
#include "ops/window/window.h"
#include "ops/zscore/zscore.h"

namespace patchbay::ops {

const plan::OpTable& Table() {
  static const plan::OpTable table(
      {DescribeCrop(),           DescribeFlip(),         DescribeRotate90(),
       DescribeAffine(),         DescribeElastic(),      DescribeIccToSrgb(),
       DescribeStainNormalize(), DescribeStainJitter(),  DescribeHedJitter(),
       DescribeColorJitter(),    DescribeWindow(),       DescribeCtNormalize(),
       DescribeZscore(),         DescribeGaussianBlur(), DescribeGaussianNoise(),
       DescribeBrightness(),     DescribeContrast(),     DescribeLowResolution(),
       DescribeGamma(),          DescribeNormalize(),    DescribeCast()});
  return table;
}

}  // namespace patchbay::ops
