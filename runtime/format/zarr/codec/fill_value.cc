#include "runtime/format/zarr/codec/fill_value.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <immintrin.h>

namespace patchbay::zarr {
namespace {

Status Refuse(const Json& value, DType dtype, std::string_view what) {
  return absl::InvalidArgumentError(StrCat("read metadata: ", what, ": fill_value ",
                                           DumpJson(value), " is not a value of ", NameOf(dtype)));
}

template <typename T>
std::vector<std::byte> BytesOf(T value) {
  std::vector<std::byte> out(sizeof value);
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

template <typename T>
StatusOr<std::vector<std::byte>> Integer(const Json& value, DType dtype, std::string_view what) {
  if (value.is_number_unsigned()) {
    const auto v = value.get<std::uint64_t>();
    if (v <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) {
      return BytesOf(static_cast<T>(v));
    }
  } else if (value.is_number_integer()) {
    const auto v = value.get<std::int64_t>();
    if (std::is_signed_v<T> && v >= static_cast<std::int64_t>(std::numeric_limits<T>::min()) &&
        v <= static_cast<std::int64_t>(std::numeric_limits<T>::max())) {
      return BytesOf(static_cast<T>(v));
    }
  } else if (value.is_number_float()) {
    const double v = value.get<double>();
    // Up to 2^53 every whole number is exact.
    if (v == std::floor(v) && std::fabs(v) <= 9007199254740992.0 &&
        v >= static_cast<double>(std::numeric_limits<T>::min()) &&
        v <= static_cast<double>(std::numeric_limits<T>::max())) {
      return BytesOf(static_cast<T>(v));
    }
  }
  return Refuse(value, dtype, what);
}

/// The bits of "0x..." with exactly `digits` hex digits.
std::optional<std::uint64_t> HexBits(std::string_view text, std::size_t digits) {
  if (text.size() != digits + 2 || text.substr(0, 2) != "0x") return std::nullopt;
  std::uint64_t bits = 0;
  for (const char c : text.substr(2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    bits = bits << 4 | static_cast<std::uint64_t>(digit);
  }
  return bits;
}

std::vector<std::byte> FloatBytes(double value, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return BytesOf(value);
    case DType::kFloat32:
      return BytesOf(static_cast<float>(value));
    case DType::kFloat16:
      return BytesOf(static_cast<std::uint16_t>(
          _cvtss_sh(static_cast<float>(value), _MM_FROUND_TO_NEAREST_INT)));
    default: {  // bfloat16: round to nearest even
      const auto single = static_cast<float>(value);
      if (std::isnan(single)) return BytesOf(std::uint16_t{0x7fc0});
      std::uint32_t bits;
      std::memcpy(&bits, &single, sizeof bits);
      return BytesOf(static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    }
  }
}

StatusOr<std::vector<std::byte>> Float(const Json& value, DType dtype, std::string_view what) {
  if (value.is_number()) return FloatBytes(value.get<double>(), dtype);
  if (!value.is_string()) return Refuse(value, dtype, what);
  const auto& text = value.get_ref<const std::string&>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "NaN") return FloatBytes(std::numeric_limits<double>::quiet_NaN(), dtype);
  if (text == "Infinity") return FloatBytes(kInfinity, dtype);
  if (text == "-Infinity") return FloatBytes(-kInfinity, dtype);
  const auto bits = HexBits(text, 2 * SizeOf(dtype));
  if (!bits) return Refuse(value, dtype, what);
  std::vector<std::byte> out(SizeOf(dtype));
  std::memcpy(out.data(), &*bits, out.size());
  return out;
}

}  // namespace

StatusOr<std::vector<std::byte>> ParseFillValue(const Json& value, DType dtype,
                                                std::string_view what) {
  if (value.is_null()) return std::vector<std::byte>(SizeOf(dtype));
  switch (dtype) {
    case DType::kBool:
      if (value.is_boolean()) return BytesOf(static_cast<std::uint8_t>(value.get<bool>()));
      if (value == 0 || value == 1) return BytesOf(static_cast<std::uint8_t>(value == 1));
      return Refuse(value, dtype, what);
    case DType::kInt8:
      return Integer<std::int8_t>(value, dtype, what);
    case DType::kUint8:
      return Integer<std::uint8_t>(value, dtype, what);
    case DType::kInt16:
      return Integer<std::int16_t>(value, dtype, what);
    case DType::kUint16:
      return Integer<std::uint16_t>(value, dtype, what);
    case DType::kInt32:
      return Integer<std::int32_t>(value, dtype, what);
    case DType::kUint32:
      return Integer<std::uint32_t>(value, dtype, what);
    case DType::kInt64:
      return Integer<std::int64_t>(value, dtype, what);
    case DType::kUint64:
      return Integer<std::uint64_t>(value, dtype, what);
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return Float(value, dtype, what);
  }
  return Refuse(value, dtype, what);
}

}  // namespace patchbay::zarr
