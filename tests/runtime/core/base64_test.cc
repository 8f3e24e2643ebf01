#include "runtime/core/base64.h"

#include <random>

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(Base64, GivesTheVectorsOfRfc4648) {
  EXPECT_EQ(Base64Of(""), "");
  EXPECT_EQ(Base64Of("f"), "Zg==");
  EXPECT_EQ(Base64Of("fo"), "Zm8=");
  EXPECT_EQ(Base64Of("foo"), "Zm9v");
  EXPECT_EQ(Base64Of("foobar"), "Zm9vYmFy");
}

TEST(Base64, ReadsBackWhatItWrote) {
  std::mt19937 random(7);
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const auto back = FromBase64(Base64Of(bytes));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(*back, bytes);
  }
}

TEST(Base64, RefusesWhatItDoesNotWrite) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg==Zg==", "Zm9v\n", "Zm 9", "====", "Zh==", "Z===", "Zm9=", "Zg==="}) {
    EXPECT_FALSE(FromBase64(text).ok()) << text;
  }
}

}  // namespace
}  // namespace patchbay
