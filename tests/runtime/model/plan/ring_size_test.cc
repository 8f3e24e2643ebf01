// A ring that does not fit is refused before a page of it is taken, with the key to change.
#include "runtime/model/plan/ring_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::plan {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(RingSize, WhatFitsPasses) {
  EXPECT_TRUE(CheckRingFits({kGiB, 4, 1}, {5 * kGiB, "x"}).ok());
  EXPECT_TRUE(CheckRingFits({kGiB, 4, 1}, {}).ok());
}

TEST(RingSize, ABatchThatIsTooLargeNamesItsSizeAndWhatIsThere) {
  const Status refused = CheckRingFits({9 * kGiB, 4, 1}, {23 * kGiB, "the machine's memory"});
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(HasSubstr("key 'batch.global_size'"), HasSubstr("36.0 GiB"),
                             HasSubstr("23.0 GiB are available (the machine's memory)")));
}

TEST(RingSize, TooManyBatchesAheadNameThePrefetch) {
  const Status refused = CheckRingFits({kGiB, 23, 20}, {10 * kGiB, "x"});
  EXPECT_THAT(std::string(refused.message()), HasSubstr("key 'batch.prefetch'"));
}

TEST(RingSize, SizesBeyondANumberAreRefusedToo) {
  EXPECT_FALSE(CheckRingFits({UINT64_MAX / 2, 4, 1}, {kGiB, "x"}).ok());
}

}  // namespace
}  // namespace patchbay::plan
