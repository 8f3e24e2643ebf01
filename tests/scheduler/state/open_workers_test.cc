// Numbers, leases and open workers in order, against plain sets.
#include "scheduler/state/open_workers.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/state/front_set.h"

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

TEST(IdSet, NamesTheNextThatAnotherHasToo) {
  std::mt19937 random(3);
  for (const std::uint32_t most : {100u, 5'000u, 300'000u}) {
    IdSet a, b;
    std::set<std::uint32_t> both;
    for (int i = 0; i < 400; ++i) {
      const std::uint32_t id = random() % most;
      if (i % 3 != 0) a.Insert(id);
      if (i % 3 != 1) b.Insert(i % 7 == 0 ? id : id / 2);
    }
    for (std::uint32_t id = a.Next(0); id != IdSet::kNone; id = a.Next(id + 1)) {
      if (b.Has(id)) both.insert(id);
    }
    for (int i = 0; i < 2'000; ++i) {
      const std::uint32_t from = random() % (most + 200);
      const auto next = both.lower_bound(from);
      ASSERT_EQ(a.NextOfBoth(b, from), next == both.end() ? IdSet::kNone : *next) << from;
    }
    EXPECT_FALSE(both.empty());
    EXPECT_EQ(a.NextOfBoth({}, 0), IdSet::kNone);
  }
}

TEST(LeaseSet, HasWhatASetHas) {
  std::mt19937 random(4);
  LeaseSet leases;
  std::set<LeaseNumber> known;
  std::uint64_t counter = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t most = i / 2'000 % 2 == 0 ? 3 : 600;
    if (known.size() < most && random() % 5 < 3) {
      const bool older = random() % 50 == 0;
      const LeaseNumber number{older ? 1u : 2u, older ? random() % 1'000 : ++counter};
      leases.insert(number);
      known.insert(number);
    } else if (!known.empty()) {
      auto at = known.begin();
      if (random() % 4 == 0) std::advance(at, random() % known.size());
      const LeaseNumber number = *at;
      EXPECT_EQ(leases.count(number), 1u);
      EXPECT_EQ(leases.erase(number), known.erase(number));
      EXPECT_EQ(leases.erase(number), 0u);
    }
    ASSERT_EQ(leases.size(), known.size());
    ASSERT_EQ(leases.empty(), known.empty());
    ASSERT_TRUE(std::equal(leases.begin(), leases.end(), known.begin(), known.end()));
  }
}

TEST(OpenWorkers, GoByLoadThenNumber) {
  std::mt19937 random(2);
  OpenWorkers open;
  std::set<OpenWorkers::value_type> known;
  IdSet some;
  for (std::uint32_t id = 0; id < 300; id += 7) some.Insert(id);
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
    const auto among = open.lower_bound(from, some);
    const auto next_of_some = std::find_if(
        next, known.end(), [](const OpenWorkers::value_type& one) { return one.second % 7 == 0; });
    ASSERT_EQ(among == open.end(), next_of_some == known.end());
    if (next_of_some != known.end()) ASSERT_EQ(*among, *next_of_some);
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
