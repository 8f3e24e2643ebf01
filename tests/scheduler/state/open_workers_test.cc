// Numbers and open workers in order, against plain sets.
#include "scheduler/state/open_workers.h"

#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace patchbay::scheduler {
namespace {

TEST(IdSet, HasWhatASetHas) {
  constexpr std::uint32_t kMost = 70'000;
  std::mt19937 random(1);
  IdSet ids;
  std::set<std::uint32_t> known;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint32_t id = i % 3 == 0 ? random() % 200 : random() % kMost;
    if (random() % 2 == 0) {
      EXPECT_EQ(ids.Insert(id), known.insert(id).second) << id;
    } else {
      EXPECT_EQ(ids.Erase(id), known.erase(id) != 0) << id;
    }
    const std::uint32_t from = random() % (kMost + 100);
    const auto next = known.lower_bound(from);
    ASSERT_EQ(ids.Next(from), next == known.end() ? IdSet::kNone : *next) << from;
    ASSERT_EQ(ids.Has(from), known.count(from) != 0) << from;
  }
  EXPECT_EQ(ids.size(), known.size());
  for (const std::uint32_t id : known) EXPECT_TRUE(ids.Erase(id));
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(ids.Next(0), IdSet::kNone);
}

TEST(OpenWorkers, GoByLoadThenNumber) {
  std::mt19937 random(2);
  OpenWorkers open;
  std::set<OpenWorkers::value_type> known;
  EXPECT_TRUE(open.begin() == open.end());
  for (int i = 0; i < 5'000; ++i) {
    const OpenWorkers::value_type one{random() % 9 == 0 ? 511 : random() % 4, random() % 300};
    if (random() % 2 == 0) {
      open.insert(one);
      known.insert(one);
    } else {
      open.erase(one);
      known.erase(one);
    }
    ASSERT_EQ(open.count(one), known.count(one));
    ASSERT_EQ(open.size(), known.size());
    const OpenWorkers::value_type from{random() % 513, random() % 301};
    const auto next = known.lower_bound(from);
    const auto found = open.lower_bound(from);
    ASSERT_EQ(found == open.end(), next == known.end());
    if (next != known.end()) ASSERT_EQ(*found, *next);
  }
  EXPECT_EQ(std::vector<OpenWorkers::value_type>(open.begin(), open.end()),
            std::vector<OpenWorkers::value_type>(known.begin(), known.end()));
}

TEST(OpenWorkers, TheWalkGoesOnWhenTheVisitedLeave) {
  OpenWorkers open;
  for (std::uint32_t id = 0; id < 200; ++id) open.insert({id % 3, id});
  std::size_t seen = 0;
  for (const auto one : open) {
    open.erase(one);
    ++seen;
  }
  EXPECT_EQ(seen, 200u);
  EXPECT_TRUE(open.empty());
}

}  // namespace
}  // namespace patchbay::scheduler
