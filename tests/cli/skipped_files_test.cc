// Files that a command skips, by kind.
#include "runtime/cli/skipped_files.h"

#include <gtest/gtest.h>

namespace patchbay::cli {
namespace {

TEST(SkippedFiles, IsCountedByKindAndNothingIsSaidOfNone) {
  EXPECT_EQ(SkippedText({{"dcm", 3}, {"other", 2}, {"txt", 1}}), "3 .dcm, 2 other, 1 .txt");
  EXPECT_EQ(SkippedText(Json::object()), "");
  EXPECT_EQ(SkippedText({{"dcm", "many"}, {"txt", 0}, {"xml", -1}}), "");
}

TEST(SkippedFiles, IsNoneInTheResultOfATaskThatDoesNotSay) {
  EXPECT_EQ(SkippedOf({{"skipped_files", {{"dcm", 3}}}}), Json({{"dcm", 3}}));
  EXPECT_EQ(SkippedOf({{"skipped_files", 3}}), Json::object());
  EXPECT_EQ(SkippedOf({{"images", 3}}), Json::object());
  EXPECT_EQ(SkippedOf(Json()), Json::object());
}

}  // namespace
}  // namespace patchbay::cli
