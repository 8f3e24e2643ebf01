// Functions whose bits are the same on every machine, against the C library's.
#include "ops/lanes/fixed_math.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace patchbay::ops {
namespace {

TEST(FixedMath, SinesAndCosinesOfDegreesAreThoseOfTheLibrary) {
  for (int tenths = -7'200; tenths <= 7'200; tenths += 7) {
    const double degrees = tenths / 10.0, radians = degrees * std::numbers::pi / 180;
    const SineAndCosine found = FixedSinCos(degrees);
    EXPECT_NEAR(found.sine, std::sin(radians), 1e-13) << degrees;
    EXPECT_NEAR(found.cosine, std::cos(radians), 1e-13) << degrees;
  }
}

}  // namespace
}  // namespace patchbay::ops
