// Discrete Fourier transforms of 16 independent columns at a time, written once for every vector
// width V. All operations are explicit (add, subtract, multiply, fused multiply-add), so every
// width gives the same bits. Include after the target pragma of a variant. A part of spectral.
#pragma once

#include "ops/spectral/spectral_kernel.h"

#define PB_INLINED __attribute__((always_inline))
#define PB_INLINE inline PB_INLINED

namespace patchbay::ops {

/// cos(2 pi k / 32) and sin of the same, k = 0 to 8.
inline constexpr float kCosine32[9] = {1.0F,
                                       0.98078528040323044913F,
                                       0.92387953251128675613F,
                                       0.83146961230254523708F,
                                       0.70710678118654752440F,
                                       0.55557023301960222474F,
                                       0.38268343236508977173F,
                                       0.19509032201612826785F,
                                       0.0F};
constexpr float Cosine32(int k) {
  k %= 32;
  if (k > 16) k = 32 - k;
  return k <= 8 ? kCosine32[k] : -kCosine32[16 - k];
}
constexpr float Sine32(int k) { return Cosine32(k + 24); }

template <typename V>
struct Complex {
  V re, im;
};

/// A compile-time index of a loop that is unrolled whole.
template <int i>
struct Index {
  static constexpr int value = i;
};

template <int n, int i = 0, typename Body>
PB_INLINE void Unrolled(Body&& body) {
  if constexpr (i < n) {
    body(Index<i>{});
    Unrolled<n, i + 1>(body);
  }
}

/// z * (c - i s).
template <typename V>
PB_INLINE Complex<V> Rotated(const Complex<V>& z, V c, V s) {
  return {FusedAdd(z.re, c, z.im * s), FusedSubtract(z.re, s, z.im * c)};
}

/// z * exp(-2 pi i e / n), n up to 32.
template <int e, int n, typename V>
PB_INLINE Complex<V> Turned(const Complex<V>& z) {
  constexpr int k = (e * (32 / n)) % 32;
  if constexpr (k == 0) {
    return z;
  } else if constexpr (k == 8) {
    return {z.im, V::All(0) - z.re};
  } else if constexpr (k == 4) {
    const V h = V::All(kCosine32[4]);
    return {(z.re + z.im) * h, (z.im - z.re) * h};
  } else if constexpr (k == 12) {
    const V h = V::All(kCosine32[4]);
    return {(z.im - z.re) * h, (z.re + z.im) * V::All(-kCosine32[4])};
  } else {
    return Rotated(z, V::All(Cosine32(k)), V::All(Sine32(k)));
  }
}

/// The transform of z[0], z[step], ... in place, in natural order; n is 2, 4, 8, 16 or 32.
template <int n, int step, typename V>
PB_INLINE void Dft(Complex<V>* z) {
  if constexpr (n == 2) {
    const Complex<V> a = z[0], b = z[step];
    z[0] = {a.re + b.re, a.im + b.im};
    z[step] = {a.re - b.re, a.im - b.im};
  } else if constexpr (n == 4) {
    const Complex<V> p{z[0].re + z[2 * step].re, z[0].im + z[2 * step].im};
    const Complex<V> q{z[0].re - z[2 * step].re, z[0].im - z[2 * step].im};
    const Complex<V> r{z[step].re + z[3 * step].re, z[step].im + z[3 * step].im};
    const Complex<V> t{z[step].re - z[3 * step].re, z[step].im - z[3 * step].im};
    z[0] = {p.re + r.re, p.im + r.im};
    z[step] = {q.re + t.im, q.im - t.re};
    z[2 * step] = {p.re - r.re, p.im - r.im};
    z[3 * step] = {q.re - t.im, q.im + t.re};
  } else {
    constexpr int a = n == 8 ? 2 : 4, b = n / a;
    Unrolled<b>([&](auto low) PB_INLINED {
      constexpr int n2 = decltype(low)::value;
      Dft<a, b * step>(z + n2 * step);
      Unrolled<a>([&](auto high) PB_INLINED {
        constexpr int k1 = decltype(high)::value;
        z[(k1 * b + n2) * step] = Turned<n2 * k1, n>(z[(k1 * b + n2) * step]);
      });
    });
    Complex<V> sorted[n];
    Unrolled<a>([&](auto high) PB_INLINED {
      constexpr int k1 = decltype(high)::value;
      Dft<b, step>(z + k1 * b * step);
      Unrolled<b>([&](auto low) PB_INLINED {
        constexpr int k2 = decltype(low)::value;
        sorted[k1 + a * k2] = z[(k1 * b + k2) * step];
      });
    });
    Unrolled<n>([&](auto i)
                    PB_INLINED { z[decltype(i)::value * step] = sorted[decltype(i)::value]; });
  }
}

/// Points are kept in runs of B with a gap after each: the points of one step, B or 16 apart, would
/// else all compete for the same places of the first cache.
template <int frame>
constexpr int RunOf() {
  return frame / FirstFactor(frame) + 1;
}
/// The place of point n before the first step.
template <int frame>
PB_INLINE constexpr int PlaceOfPoint(int n) {
  constexpr int b = frame / FirstFactor(frame);
  return n / b * RunOf<frame>() + n % b;
}
/// Where the second step leaves coefficient k.
template <int frame>
PB_INLINE constexpr int PlaceOf(int k) {
  constexpr int a = FirstFactor(frame);
  return k % a * RunOf<frame>() + k / a;
}
/// Where a slot of the plane lies.
PB_INLINE constexpr int PlaceOfSlot(int slot) { return slot + slot / kSpectralLanes; }

template <typename V>
PB_INLINE Complex<V> LoadComplex(const float* at) {
  return {V::Load(at), V::Load(at + kSpectralLanes)};
}
template <typename V>
PB_INLINE void StoreComplex(const Complex<V>& z, float* at) {
  z.re.Store(at);
  z.im.Store(at + kSpectralLanes);
}

/// The first step: A-point transforms across, then twiddles. `load(n)` returns point n.
template <typename V, int frame, typename LoadPoint>
PB_INLINE void FirstStep(const float* twiddle, float* out, const LoadPoint& load) {
  constexpr int a = FirstFactor(frame), b = frame / a;
  for (int n2 = 0; n2 < b; ++n2) {
    Complex<V> z[a];
    Unrolled<a>([&](auto i)
                    PB_INLINED { z[decltype(i)::value] = load(decltype(i)::value * b + n2); });
    Dft<a, 1>(z);
    Unrolled<a>([&](auto i) PB_INLINED {
      constexpr int k1 = decltype(i)::value;
      if constexpr (k1 != 0) {
        const int at = k1 * b + n2;
        z[k1] = Rotated(z[k1], V::All(twiddle[2 * at]), V::All(twiddle[2 * at + 1]));
      }
      StoreComplex(z[k1], out + (k1 * RunOf<frame>() + n2) * kSpectralColumns);
    });
  }
}

/// The second step: B-point transforms of the first step's output. `store(k, z)` receives
/// coefficient k.
template <typename V, int frame, typename StorePoint>
PB_INLINE void SecondStep(const float* in, const StorePoint& store) {
  constexpr int a = FirstFactor(frame), b = frame / a;
  for (int k1 = 0; k1 < a; ++k1) {
    Complex<V> z[b];
    Unrolled<b>([&](auto i) PB_INLINED {
      z[decltype(i)::value] =
          LoadComplex<V>(in + (k1 * RunOf<frame>() + decltype(i)::value) * kSpectralColumns);
    });
    Dft<b, 1>(z);
    Unrolled<b>([&](auto i) PB_INLINED {
      constexpr int k2 = decltype(i)::value;
      store(k1 + a * k2, z[k2]);
    });
  }
}

}  // namespace patchbay::ops
