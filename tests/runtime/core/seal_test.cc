#include "runtime/core/seal.h"

#include <string>

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(Seal, OpensWhereItWasSealedAndNowhereElse) {
  Sealer sealer("secret", "test");
  for (const std::string& text : {std::string(), std::string("a"), std::string(100'000, 'x')}) {
    std::string sealed = text;
    sealer.Seal(7, sealed);
    ASSERT_EQ(sealed.size(), text.size() + kSealBytes);
    if (text.size() > 1) EXPECT_EQ(sealed.find("xxxx"), std::string::npos);
    EXPECT_EQ(sealer.Open(7, sealed).value(), text);
    EXPECT_TRUE(absl::IsDataLoss(sealer.Open(8, sealed).status()));
  }
}

TEST(Seal, AnotherSealerOfTheSecretOpensItAndOthersDoNot) {
  Sealer sealer("secret", "test"), later("secret", "test");
  std::string first = "text", second = "text";
  sealer.Seal(1, first);
  later.Seal(1, second);
  EXPECT_NE(first, second) << "keys of their own";
  EXPECT_EQ(later.Open(1, first).value(), "text");
  EXPECT_EQ(sealer.Open(1, second).value(), "text");
  EXPECT_EQ(later.Open(1, first).value(), "text") << "going back to the first one's key";
  EXPECT_TRUE(absl::IsDataLoss(Sealer("secret", "other").Open(1, first).status()));
  EXPECT_TRUE(absl::IsDataLoss(Sealer("Secret", "test").Open(1, first).status()));
  EXPECT_EQ(sealer.key_id(), later.key_id());
  EXPECT_NE(sealer.key_id(), Sealer("secret", "other").key_id());
}

TEST(Seal, NoTwoTextsShareANonce) {
  Sealer sealer("secret", "test");
  std::string first(32, 'a'), second(32, 'a');
  sealer.Seal(1, first);
  sealer.Seal(1, second);
  EXPECT_NE(first.substr(0, 32), second.substr(0, 32));
}

TEST(Seal, EveryFlippedBitAndEveryCutIsRefused) {
  Sealer sealer("secret", "test");
  std::string sealed = "what nobody else may read";
  sealer.Seal(1, sealed);
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit) {
    std::string damaged = sealed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(absl::IsDataLoss(sealer.Open(1, damaged).status())) << "bit " << bit;
  }
  for (std::size_t bytes = 0; bytes < sealed.size(); ++bytes) {
    EXPECT_TRUE(absl::IsDataLoss(sealer.Open(1, sealed.substr(0, bytes)).status())) << bytes;
  }
  EXPECT_EQ(sealer.Open(1, sealed).value(), "what nobody else may read");
}

}  // namespace
}  // namespace patchbay
