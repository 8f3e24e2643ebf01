#include "runtime/core/element.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <immintrin.h>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

template <typename T>
std::optional<Element> Whole(double value) {
  // 2^63 and 2^64 are no values of their types, and the first doubles past them.
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double begin = std::is_signed_v<T> ? -end : 0.0;
  if (!(value >= begin) || !(value < end) || value != std::floor(value)) return std::nullopt;
  Element out{};
  const auto typed = static_cast<T>(value);
  std::memcpy(out.data(), &typed, sizeof typed);
  return out;
}

template <typename T>
Element RawElement(T value) {
  Element out{};
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::uint16_t RoundedToBfloat16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::optional<Element> Real(double value, DType dtype) {
  if (!std::isfinite(value)) return std::nullopt;
  if (dtype == DType::kFloat64) return RawElement(value);
  const auto single = static_cast<float>(value);
  if (!std::isfinite(single)) return std::nullopt;
  if (dtype == DType::kFloat32) return RawElement(single);
  if (dtype == DType::kBfloat16) {
    const std::uint16_t bits = RoundedToBfloat16(single);
    return (bits & 0x7f80) == 0x7f80 ? std::nullopt : std::optional(RawElement(bits));
  }
  const auto bits = static_cast<std::uint16_t>(_cvtss_sh(single, _MM_FROUND_TO_NEAREST_INT));
  return (bits & 0x7c00) == 0x7c00 ? std::nullopt : std::optional(RawElement(bits));
}

}  // namespace

std::optional<Element> ElementOf(double value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value == 0 || value == 1 ? Whole<std::uint8_t>(value) : std::nullopt;
    case DType::kInt8:
      return Whole<std::int8_t>(value);
    case DType::kUint8:
      return Whole<std::uint8_t>(value);
    case DType::kInt16:
      return Whole<std::int16_t>(value);
    case DType::kUint16:
      return Whole<std::uint16_t>(value);
    case DType::kInt32:
      return Whole<std::int32_t>(value);
    case DType::kUint32:
      return Whole<std::uint32_t>(value);
    case DType::kInt64:
      return Whole<std::int64_t>(value);
    case DType::kUint64:
      return Whole<std::uint64_t>(value);
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return Real(value, dtype);
  }
  return std::nullopt;
}

std::string RangeOf(DType dtype) {
  const bool is_signed = dtype == DType::kInt8 || dtype == DType::kInt16 ||
                         dtype == DType::kInt32 || dtype == DType::kInt64;
  const bool is_real = dtype == DType::kFloat16 || dtype == DType::kBfloat16 ||
                       dtype == DType::kFloat32 || dtype == DType::kFloat64;
  if (dtype == DType::kBool) return "0 or 1";
  if (is_real) return StrCat("a finite ", NameOf(dtype));
  const auto bits = static_cast<int>(8 * SizeOf(dtype)) - (is_signed ? 1 : 0);
  const std::uint64_t highest = ~std::uint64_t{0} >> (64 - bits);
  if (!is_signed) return StrCat("0 to ", highest);
  return StrCat(-static_cast<std::int64_t>(highest) - 1, " to ", highest);
}

}  // namespace patchbay
