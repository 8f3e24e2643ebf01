#include "runtime/core/runs.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(RunLength, EndsWhereTheFirstOtherByteIs) {
  for (std::int64_t count = 0; count <= 40; ++count) {
    for (std::int64_t other = 1; other <= count; ++other) {
      for (const std::uint8_t value : {0, 1, 128, 255}) {
        std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count) + 1, value);
        bytes[static_cast<std::size_t>(other)] = static_cast<std::uint8_t>(value ^ 0x80);
        EXPECT_EQ(RunLength(bytes.data(), count), other) << count << " bytes of " << int{value};
      }
    }
  }
  const std::vector<std::uint8_t> none(1, 7);
  EXPECT_EQ(RunLength(none.data(), 0), 0);
}

TEST(CountValues, CountsEveryByteAndAddsToWhatIsThere) {
  std::vector<std::uint8_t> bytes;
  std::array<std::uint32_t, 256> expected{}, counts{};
  for (const std::size_t run : {1, 2, 7, 8, 9, 30, 1, 1}) {
    const auto value = static_cast<std::uint8_t>(255 - run * 8);
    bytes.insert(bytes.end(), run, value);
    expected[value] += static_cast<std::uint32_t>(2 * run);
  }
  for (int i = 0; i < 2; ++i) {
    CountValues(bytes.data(), static_cast<std::int64_t>(bytes.size()), counts);
  }
  EXPECT_EQ(counts, expected);
  CountValues(bytes.data(), 0, counts);
  EXPECT_EQ(counts, expected);
}

}  // namespace
}  // namespace patchbay
