// Functions of parameters in double, from additions, products and quotients alone: C libraries
// differ in the last bit, from one processor to the next too.
#pragma once

#include <cmath>
#include <cstdint>

namespace patchbay::ops {

struct SineAndCosine {
  double sine = 0, cosine = 1;
};

/// Sine and cosine of an angle in degrees, to a few units of the last place.
SineAndCosine FixedSinCos(double degrees);
/// log2 of a positive normal number.
double FixedBinaryLog(double x);
/// 2^x for x in -1000 .. 1000.
double FixedBinaryPower(double x);

}  // namespace patchbay::ops
