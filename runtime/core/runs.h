// Runs of equal bytes, such as the pixels of a label image.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace patchbay {

/// Eight bytes of one value.
inline std::uint64_t EightOf(std::uint8_t value) { return value * 0x0101010101010101ULL; }

/// Eight bytes, at any address.
inline std::uint64_t EightAt(const std::uint8_t* at) {
  std::uint64_t eight = 0;
  std::memcpy(&eight, at, sizeof(eight));
  return eight;
}

/// How many of the `count` bytes from `at` on equal the first: at least 1 where `count` is.
inline std::int64_t RunLength(const std::uint8_t* at, std::int64_t count) {
  static_assert(std::endian::native == std::endian::little);
  std::int64_t length = 0;
  const std::uint64_t eight = count > 0 ? EightOf(*at) : 0;
  for (; length + 32 <= count; length += 32) {
    const std::uint8_t* four = at + length;
    const std::uint64_t differ = (EightAt(four) ^ eight) | (EightAt(four + 8) ^ eight) |
                                 (EightAt(four + 16) ^ eight) | (EightAt(four + 24) ^ eight);
    if (differ != 0) break;
  }
  for (; length + 8 <= count; length += 8) {
    const std::uint64_t differs = EightAt(at + length) ^ eight;
    if (differs != 0) return length + std::countr_zero(differs) / 8;
  }
  while (length < count && at[length] == *at) ++length;
  return length;
}

/// Adds to `counts` (256 of an unsigned type) how often each value is among `count` bytes.
template <typename Counts>
void CountValues(const std::uint8_t* at, std::int64_t count, Counts& counts) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t run = RunLength(at + i, count - i);
    counts[at[i]] += static_cast<typename Counts::value_type>(run);
    i += run;
  }
}

}  // namespace patchbay
