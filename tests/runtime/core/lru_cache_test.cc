// The bounds of a cache, and the order in which it lets values go.
#include "runtime/core/lru_cache.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace patchbay {
namespace {

using Words = LruCache<int, std::string>;

std::vector<int> KeysOf(const Words::Entries& entries) {
  std::vector<int> keys;
  for (const auto& entry : entries) keys.push_back(entry.key);
  return keys;
}

TEST(LruCache, LetsGoOfTheLeastRecentlyUsedAboveItsCost) {
  Words words(10);
  EXPECT_TRUE(words.Insert(1, "a", 4).empty());
  EXPECT_TRUE(words.Insert(2, "b", 4).empty());
  ASSERT_NE(words.Find(1), nullptr);
  EXPECT_EQ(KeysOf(words.Insert(3, "c", 4)), std::vector<int>{2});
  EXPECT_EQ(words.Find(2), nullptr);
  EXPECT_EQ(*words.Find(1), "a");
  EXPECT_EQ(words.size(), 2u);
  EXPECT_EQ(words.cost(), 8u);
}

TEST(LruCache, KeepsItsFewestEntriesWhateverTheyCost) {
  Words two(10, 2), none(0, 0);
  two.Insert(1, "a", 100);
  two.Insert(2, "b", 100);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_EQ(KeysOf(two.Insert(3, "c", 1)), std::vector<int>{1});
  EXPECT_EQ(KeysOf(none.Insert(1, "a", 1)), std::vector<int>{1});
  EXPECT_EQ(none.cost(), 0u);
}

TEST(LruCache, PutsAValueInPlaceOfTheEarlierOneOfItsKey) {
  Words words(10);
  words.Insert(1, "old", 6);
  EXPECT_EQ(words.Insert(1, "new", 7).front().value, "old");
  EXPECT_EQ(*words.Find(1), "new");
  EXPECT_EQ(words.cost(), 7u);
}

TEST(LruCache, GivesBackTheEntriesItErases) {
  LruCache<int, std::unique_ptr<int>> numbers(10);
  for (int i = 0; i < 4; ++i) numbers.Insert(i, std::make_unique<int>(i));
  EXPECT_EQ(numbers.EraseIf([](const auto& e) { return e.key % 2 == 0; }).size(), 2u);
  EXPECT_EQ(*numbers.Erase(3).front().value, 3);
  EXPECT_TRUE(numbers.Erase(3).empty());
  EXPECT_EQ(numbers.size(), 1u);
  EXPECT_EQ(numbers.cost(), 1u);
}

}  // namespace
}  // namespace patchbay
