// Components against a flood fill of every voxel.
#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workers/jobs/labels/volume_import.h"

namespace patchbay::workers {
namespace {

plan::ClassTable Table() {
  plan::ClassTable table;
  table.classes = {{"b", 2, {}, {}}, {"a", 1, {}, {}}, {"out", 255, {}, {}}};
  return table;
}

/// The components of a value, each as sorted voxel numbers, by their first voxel.
std::vector<std::vector<std::int64_t>> Flooded(const std::vector<std::uint8_t>& voxels,
                                               const Extent& size, std::uint8_t value) {
  std::vector<std::vector<std::int64_t>> found;
  std::vector<bool> seen(voxels.size());
  for (std::int64_t start = 0; start < size.Pixels(); ++start) {
    if (voxels[static_cast<std::size_t>(start)] != value || seen[static_cast<std::size_t>(start)]) {
      continue;
    }
    std::vector<std::int64_t> open = {start}, own;
    seen[static_cast<std::size_t>(start)] = true;
    while (!open.empty()) {
      const std::int64_t at = open.back();
      open.pop_back();
      own.push_back(at);
      const Point p = CellAt(size, at);
      for (std::int64_t i = 0; i < 27; ++i) {
        const Point next{p.z + i / 9 - 1, p.y + i / 3 % 3 - 1, p.x + i % 3 - 1};
        if (!next.Inside(size)) continue;
        const auto to = static_cast<std::size_t>(IndexOf(size, next));
        if (voxels[to] != value || seen[to]) continue;
        seen[to] = true;
        open.push_back(static_cast<std::int64_t>(to));
      }
    }
    std::sort(own.begin(), own.end());
    found.push_back(std::move(own));
  }
  return found;
}

TEST(Components, AreThoseOfAFloodFill) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 200; ++round) {
    const auto side = [&] { return static_cast<std::int64_t>(1 + random() % 9); };
    const Extent size{side(), side(), side()};
    std::vector<std::uint8_t> voxels(static_cast<std::size_t>(size.Pixels()));
    const std::uint64_t rare = 2 + random() % 9;
    for (auto& v : voxels) {
      v = random() % rare == 0 ? static_cast<std::uint8_t>(1 + random() % 2)
                               : (random() % 2 == 0 ? 0 : 255);
    }
    const plan::ComponentIndex index = FindComponents(Table(), voxels, size, {}, {}).value();
    ASSERT_EQ(index.classes.size(), 2u);
    for (const plan::ClassComponents& one : index.classes) {
      const auto expected = Flooded(voxels, size, one.value);
      ASSERT_EQ(one.components.size(), expected.size()) << size.ToString() << " round " << round;
      for (std::size_t c = 0; c < expected.size(); ++c) {
        ASSERT_EQ(one.components[c].size(), expected[c].size());
        for (std::size_t n = 0; n < expected[c].size(); ++n) {
          ASSERT_EQ(IndexOf(size, one.components[c].Cell(n)), expected[c][n]);
        }
      }
    }
    EXPECT_EQ(*plan::DecodeComponentIndex(plan::EncodeComponentIndex(index)), index);
  }
}

TEST(Components, NoiseIsNotIndexed) {
  const Extent size{64, 64, 256};
  std::vector<std::uint8_t> voxels(static_cast<std::size_t>(size.Pixels()));
  for (std::int64_t i = 0; i < size.Pixels(); ++i) {  // every other voxel of every other row
    const Point p = CellAt(size, i);
    voxels[static_cast<std::size_t>(i)] = p.z % 2 + p.y % 2 + p.x % 2 == 0 ? 1 : 0;
  }
  voxels.back() = 2;
  const plan::ComponentIndex index = FindComponents(Table(), voxels, size, {}, {}).value();
  static_assert(32 * 32 * 128 > plan::kMaxComponents);
  EXPECT_FALSE(index.Find("a")->is_indexed);
  EXPECT_TRUE(index.Find("a")->components.empty());
  EXPECT_EQ(index.Find("b")->components.size(), 1u);
}

/// Every other voxel of the first class, but the last one of the second.
std::vector<std::uint8_t> Checkered(const Extent& size) {
  std::vector<std::uint8_t> voxels(static_cast<std::size_t>(size.Pixels()));
  for (std::size_t i = 0; i < voxels.size(); i += 2) voxels[i] = 1;
  voxels.back() = 2;
  return voxels;
}

TEST(Components, AClassOfTooManyRunsTakesNoMemory) {
  const Extent size{1, 4, (static_cast<std::int64_t>(plan::kMaxComponentRuns) + 4) / 2};
  const MemoryBudget room{1 << 20, "the test"};
  const plan::ComponentIndex index =
      FindComponents(Table(), Checkered(size), size, room, {}).value();
  EXPECT_FALSE(index.Find("a")->is_indexed);
  EXPECT_EQ(index.Find("b")->components.size(), 1u);
}

TEST(Components, MoreRunsThanMemoryIsThereForAreRefused) {
  const Extent size{16, 16, 256};
  const auto index = FindComponents(Table(), Checkered(size), size, {1 << 20, "the test"}, {});
  ASSERT_TRUE(absl::IsResourceExhausted(index.status())) << index.status();
  EXPECT_THAT(
      std::string(index.status().message()),
      testing::AllOf(testing::HasSubstr("find components"), testing::HasSubstr("the test")));
}

TEST(Components, ReportEverySliceAndEndWhereTheyAreToldTo) {
  const Extent size{9, 4, 5};
  const std::vector<std::uint8_t> voxels(static_cast<std::size_t>(size.Pixels()), 1);
  int calls = 0;
  const auto count = [&calls] { return ++calls, absl::OkStatus(); };
  ASSERT_TRUE(FindComponents(Table(), voxels, size, {}, count).ok());
  EXPECT_GE(calls, 3 * size.z) << "to count runs, to find and to join them";
  for (const int last : {1, 10, calls}) {
    int left = last;
    const auto index = FindComponents(Table(), voxels, size, {}, [&left] {
      return --left > 0 ? absl::OkStatus() : absl::CancelledError("enough");
    });
    EXPECT_TRUE(absl::IsCancelled(index.status())) << last;
  }
}

}  // namespace
}  // namespace patchbay::workers
