// Names from outside, on one line.
#include "runtime/base/printable.h"

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(Printable, ShowsWhatWouldSteerATerminal) {
  EXPECT_EQ(Printable("\x1b[2J.svs\r\x7f"), "\\x1b[2J.svs\\x0d\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("x\xc2\x9b"
                      "31m"),
            "x\\x9b31m");  // CSI in one character
}

TEST(Printable, ShowsWhatWouldBeginALineOrAColumn) {
  EXPECT_EQ(Printable("a\nOK b.svs"), "a\\x0aOK b.svs");
  EXPECT_EQ(Printable("a\tb\r\n"), "a\\x09b\\x0d\\x0a");
}

TEST(Printable, LeavesEveryOtherCharacterAsItIs) {
  EXPECT_EQ(Printable("c\xc3\xa4 \\x0a"), "c\xc3\xa4 \\x0a");
  EXPECT_EQ(Printable("\xe2\x82\x80\xc2\xa0"), "\xe2\x82\x80\xc2\xa0");  // no C1 controls
  EXPECT_EQ(Printable("\xff.svs"), "\xff.svs");                          // no UTF-8
}

}  // namespace
}  // namespace patchbay
