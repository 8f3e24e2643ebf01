// Names from outside, on one line.
#include "runtime/core/printable.h"

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

TEST(Printable, ShowsWhatWouldTurnTheDirectionOfText) {
  EXPECT_EQ(Printable("a\u202egpj.svs"), "a\\u202egpj.svs");
  EXPECT_EQ(Printable("\u202a\u202b\u202c\u202d\u2066\u2067\u2068\u2069"),
            "\\u202a\\u202b\\u202c\\u202d\\u2066\\u2067\\u2068\\u2069");
  EXPECT_EQ(Printable("\u200e\u200f\u061c"), "\\u200e\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029"), "\\u2028\\u2029");  // they end lines
  EXPECT_EQ(Printable("\u202f\u2030\u2065\u206a\u05d0"), "\u202f\u2030\u2065\u206a\u05d0");
}

TEST(Printable, LeavesEveryOtherCharacterAsItIs) {
  EXPECT_EQ(Printable("c\xc3\xa4 \\x0a"), "c\xc3\xa4 \\x0a");
  EXPECT_EQ(Printable("\xe2\x82\x80\xc2\xa0"), "\xe2\x82\x80\xc2\xa0");  // no C1 controls
  EXPECT_EQ(Printable("\xff.svs"), "\xff.svs");                          // no UTF-8
}

}  // namespace
}  // namespace patchbay
