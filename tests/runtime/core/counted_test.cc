#include "runtime/core/counted.h"

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(Counted, HasThePluralOfItsNumber) {
  EXPECT_EQ(Counted(0, "row"), "0 rows");
  EXPECT_EQ(Counted(1, "row"), "1 row");
  EXPECT_EQ(Counted(2, "row"), "2 rows");
  EXPECT_EQ(Counted(1, "patch", "patches"), "1 patch");
  EXPECT_EQ(Counted(12, "patch", "patches"), "12 patches");
}

}  // namespace
}  // namespace patchbay
