#include "ops/lanes/fixed_math.h"

#include <bit>

namespace patchbay::ops {
namespace {

constexpr double kRadiansPerDegree = 0.017453292519943295, kLn2 = 0.6931471805599453;
constexpr int kTerms = 24;

/// Within 45 degrees, by the power series.
SineAndCosine NearZero(double degrees) {
  const double x = degrees * kRadiansPerDegree;
  SineAndCosine sum{0, 0};
  double term = 1;
  for (int n = 0; n < kTerms; ++n) {
    const double sign = n % 4 < 2 ? 1 : -1;
    (n % 2 == 0 ? sum.cosine : sum.sine) += sign * term;
    term = term * x / (n + 1);
  }
  return sum;
}

}  // namespace

SineAndCosine FixedSinCos(double degrees) {
  const double quarters = std::floor(degrees / 90 + 0.5);
  const SineAndCosine near = NearZero(degrees - 90 * quarters);
  switch (static_cast<std::int64_t>(quarters) & 3) {
    case 1:
      return {near.cosine, -near.sine};
    case 2:
      return {-near.sine, -near.cosine};
    case 3:
      return {-near.cosine, near.sine};
    default:
      return near;
  }
}

double FixedBinaryLog(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  const double mantissa =
      std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  // ln m = 2 artanh((m - 1) / (m + 1)), and the argument is at most a third.
  const double z = (mantissa - 1) / (mantissa + 1), square = z * z;
  double sum = 0, power = z;
  for (int n = 0; n < kTerms; ++n) {
    sum += power / (2 * n + 1);
    power *= square;
  }
  return static_cast<double>(exponent) + 2 * sum / kLn2;
}

double FixedBinaryPower(double x) {
  const double whole = std::floor(x + 0.5), rest = (x - whole) * kLn2;
  double sum = 0, term = 1;
  for (int n = 0; n < kTerms; ++n) {
    sum += term;
    term = term * rest / (n + 1);
  }
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace patchbay::ops
