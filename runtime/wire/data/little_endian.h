// Integers at any address, little-endian whatever the machine is.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace patchbay::data {

template <std::unsigned_integral T>
void StoreLittle(std::byte* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    to[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

template <std::unsigned_integral T>
T LoadLittle(const std::byte* from) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::uint64_t{std::to_integer<std::uint8_t>(from[i])} << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace patchbay::data
