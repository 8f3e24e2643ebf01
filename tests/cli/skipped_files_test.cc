// Files that a command skips, by kind.
#include "runtime/cli/skipped_files.h"

#include <gtest/gtest.h>

namespace patchbay::cli {
namespace {

TEST(SkippedFiles, IsCountedByKindAndNothingIsSaidOfNone) {
  EXPECT_EQ(TextOf(FilesByKind{{"dcm", 3}, {"other", 2}, {"txt", 1}}), "3 .dcm, 2 other, 1 .txt");
  EXPECT_EQ(TextOf(FilesByKind()), "");
  EXPECT_EQ(TextOf(FilesByKind{{"txt", 0}, {"xml", -1}}), "");
}

TEST(SkippedFiles, IsNoneInTheResultOfATaskThatDoesNotSay) {
  EXPECT_EQ(SkippedOf({{"skipped_files", {{"dcm", 3}}}}), (FilesByKind{{"dcm", 3}}));
  for (const Json& other : {Json({{"skipped_files", 3}}), Json({{"skipped_files", {{"dcm", "x"}}}}),
                            Json({{"images", 3}}), Json()}) {
    EXPECT_EQ(SkippedOf(other), FilesByKind()) << other;
  }
}

}  // namespace
}  // namespace patchbay::cli
