// One thread's part of a transform of 256 points by 16 threads of 16 points each. The same code
// runs in kernels and, one thread after another, in tests; all operations are explicit (no
// contraction), so both give the same bits. A part of spectral.
#pragma once

#include "ops/colour/grey_math.h"
#include "ops/spectral/spectral_math.h"

#if defined(__CUDACC__)
#define PB_DEVICE_CODE __device__ __forceinline__
#define PB_UNROLL _Pragma("unroll")
#else
#define PB_DEVICE_CODE inline
#define PB_UNROLL
#endif

namespace patchbay::ops::spectral_passes {

struct alignas(8) ComplexFloat {
  float re, im;
};

/// z * w.
PB_DEVICE_CODE ComplexFloat Turned(ComplexFloat z, ComplexFloat w) {
  return {fmaf(z.re, w.re, -(z.im * w.im)), fmaf(z.re, w.im, z.im * w.re)};
}

/// The transform of four points in place, in natural order.
PB_DEVICE_CODE void Dft4(ComplexFloat& a, ComplexFloat& b, ComplexFloat& c, ComplexFloat& d) {
  const ComplexFloat even = {a.re + c.re, a.im + c.im}, odd = {a.re - c.re, a.im - c.im};
  const ComplexFloat sum = {b.re + d.re, b.im + d.im}, gap = {b.re - d.re, b.im - d.im};
  a = {even.re + sum.re, even.im + sum.im};
  b = {odd.re + gap.im, odd.im - gap.re};
  c = {even.re - sum.re, even.im - sum.im};
  d = {odd.re - gap.im, odd.im + gap.re};
}

/// The transform of 16 points in place. Coefficient k is then at Dft16Place(k).
PB_DEVICE_CODE void Dft16(ComplexFloat (&z)[16]) {
  // cos and sin of pi / 8, and sqrt(1/2).
  constexpr float kC = 0.923879533F, kS = 0.382683432F, kH = 0.707106781F;
  Dft4(z[0], z[4], z[8], z[12]);
  Dft4(z[1], z[5], z[9], z[13]);
  Dft4(z[2], z[6], z[10], z[14]);
  Dft4(z[3], z[7], z[11], z[15]);
  // Point 4 k + n turns by exp(-2 pi i n k / 16).
  z[5] = Turned(z[5], {kC, -kS});
  z[6] = {(z[6].re + z[6].im) * kH, (z[6].im - z[6].re) * kH};
  z[7] = Turned(z[7], {kS, -kC});
  z[9] = {(z[9].re + z[9].im) * kH, (z[9].im - z[9].re) * kH};
  z[10] = {z[10].im, -z[10].re};
  z[11] = {(z[11].im - z[11].re) * kH, (z[11].re + z[11].im) * -kH};
  z[13] = Turned(z[13], {kS, -kC});
  z[14] = {(z[14].im - z[14].re) * kH, (z[14].re + z[14].im) * -kH};
  z[15] = Turned(z[15], {-kC, kS});
  Dft4(z[0], z[1], z[2], z[3]);
  Dft4(z[4], z[5], z[6], z[7]);
  Dft4(z[8], z[9], z[10], z[11]);
  Dft4(z[12], z[13], z[14], z[15]);
}

PB_DEVICE_CODE constexpr int Dft16Place(int k) { return k % 4 * 4 + k / 4; }

}  // namespace patchbay::ops::spectral_passes
