// Agreement of label sets: figures of scikit-learn's cohen_kappa_score, and sums over stores.
#include "runtime/model/results/label_agreement.h"

#include <gtest/gtest.h>

namespace patchbay::results {
namespace {

using Table = std::vector<std::uint64_t>;
constexpr KappaWeights kPlain = KappaWeights::kNone;

TEST(LabelAgreement, KappaIsScikitLearns) {
  const Table three = {10, 2, 0, 3, 8, 4, 1, 2, 9};
  EXPECT_NEAR(*AgreementOf(three, 3, kPlain).kappa, 0.5398230088495575, 1e-12);
  EXPECT_NEAR(*AgreementOf(three, 3, KappaWeights::kLinear).kappa, 0.621923937360179, 1e-12);
  EXPECT_NEAR(*AgreementOf(three, 3, KappaWeights::kQuadratic).kappa, 0.7058823529411764, 1e-12);
  const Agreement two = AgreementOf({20, 5, 10, 15}, 2, kPlain);
  EXPECT_EQ(two.pixels, 50u);
  EXPECT_NEAR(*two.share, 0.7, 1e-12);
  EXPECT_NEAR(*two.kappa, 0.4, 1e-12);
  EXPECT_NEAR(*two.dice[0], 40.0 / 55, 1e-12);
  EXPECT_NEAR(*two.dice[1], 30.0 / 45, 1e-12);
  EXPECT_NEAR(*AgreementOf({0, 4, 4, 0}, 2, kPlain).kappa, -1, 1e-12);
}

TEST(LabelAgreement, WhatNobodyHasIsNoNumber) {
  const Agreement alike = AgreementOf({9, 0, 0, 0}, 2, kPlain);
  EXPECT_EQ(alike.share, 1.0);
  EXPECT_EQ(alike.kappa, std::nullopt) << "one class is no evidence";
  EXPECT_EQ(alike.dice, (std::vector<std::optional<double>>{1.0, std::nullopt}));
  const Agreement nothing = AgreementOf({0, 0, 0, 0}, 2, kPlain);
  EXPECT_EQ(nothing.share, std::nullopt);
  EXPECT_EQ(nothing.kappa, std::nullopt);
  EXPECT_TRUE(AgreementOf({}, 0, kPlain).dice.empty());
}

TEST(LabelAgreement, CountsOfStoresAreAddedByTheNamesOfClasses) {
  StoreAgreement sum;
  const StoreAgreement first{{"a", "b"}, {{0, 1, {1, 2, 3, 4}, 5, 6}}};
  const StoreAgreement second{{"c", "a"}, {{0, 1, {10, 20, 30, 40}, 50, 60}}};
  ASSERT_TRUE(AddAgreement(first, sum).ok());
  ASSERT_TRUE(AddAgreement(second, sum).ok());
  EXPECT_EQ(sum.classes, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(sum.pairs[0].pixels, (Table{41, 2, 30, 3, 4, 0, 20, 0, 10}));
  EXPECT_EQ(sum.pairs[0].only_a, 55u);
  EXPECT_EQ(sum.pairs[0].only_b, 66u);
  const StoreAgreement none{{}, {{0, 1, {}, 0, 0}}};
  EXPECT_TRUE(AddAgreement(none, sum).ok());
  for (const StoreAgreement& wrong :
       {StoreAgreement{{"a"}, {{0, 1, {1, 2}, 0, 0}}}, StoreAgreement{{"a"}, {{0, 2, {1}, 0, 0}}},
        StoreAgreement{{"a"}, {}}}) {
    EXPECT_FALSE(AddAgreement(wrong, sum).ok());
  }
}

}  // namespace
}  // namespace patchbay::results
