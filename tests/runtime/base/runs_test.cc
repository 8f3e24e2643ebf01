#include "runtime/base/runs.h"

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

}  // namespace
}  // namespace patchbay
