// Files that a command passes over, by kind.
#include "runtime/cli/passed_over.h"

#include <gtest/gtest.h>

namespace patchbay::cli {
namespace {

TEST(PassedOver, IsCountedByKindAndNothingIsSaidOfNone) {
  EXPECT_EQ(PassedOverText({{"dcm", 3}, {"other", 2}, {"txt", 1}}), "3 .dcm, 2 other, 1 .txt");
  EXPECT_EQ(PassedOverText(Json::object()), "");
  EXPECT_EQ(PassedOverText({{"dcm", "many"}, {"txt", 0}, {"xml", -1}}), "");
}

TEST(PassedOver, IsNoneInTheResultOfATaskThatDoesNotSay) {
  EXPECT_EQ(PassedOverOf({{"passed_over", {{"dcm", 3}}}}), Json({{"dcm", 3}}));
  EXPECT_EQ(PassedOverOf({{"passed_over", 3}}), Json::object());
  EXPECT_EQ(PassedOverOf({{"images", 3}}), Json::object());
  EXPECT_EQ(PassedOverOf(Json()), Json::object());
}

}  // namespace
}  // namespace patchbay::cli
