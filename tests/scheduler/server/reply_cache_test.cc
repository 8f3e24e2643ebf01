#include "scheduler/server/reply_cache.h"

#include <gtest/gtest.h>

namespace patchbay::scheduler {
namespace {

TEST(ReplyCache, GivesTheSameAnswerForTheSameRequestOfTheSameSenderOnly) {
  ReplyCache cache;
  cache.Keep({"ann", 1, 2}, "answer");
  ASSERT_NE(cache.Find({"ann", 1, 2}), nullptr);
  EXPECT_EQ(*cache.Find({"ann", 1, 2}), "answer");
  EXPECT_EQ(cache.Find({"bob", 1, 2}), nullptr);
  EXPECT_EQ(cache.Find({"ann", 2, 2}), nullptr);
  EXPECT_EQ(cache.Find({"ann", 1, 3}), nullptr);
  cache.Keep({"ann", 1, 2}, "another");
  EXPECT_EQ(*cache.Find({"ann", 1, 2}), "answer");
}

TEST(ReplyCache, ForgetsTheOldestBeyondItsLimit) {
  ReplyCache cache;
  for (std::uint64_t i = 0; i <= ReplyCache::kAnswersMax; ++i) cache.Keep({"ann", 1, i}, "x");
  EXPECT_EQ(cache.Find({"ann", 1, 0}), nullptr);
  EXPECT_NE(cache.Find({"ann", 1, 1}), nullptr);
  EXPECT_NE(cache.Find({"ann", 1, ReplyCache::kAnswersMax}), nullptr);
}

}  // namespace
}  // namespace patchbay::scheduler
