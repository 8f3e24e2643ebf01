// The sets of places that sampling draws from, and their text.
#include "runtime/model/positions/position_index.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

using Cells = std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

CellSet SetOf(const Cells& cells, std::uint32_t step = 1) {
  CellSet set(step);
  for (const auto& [z, y, x] : cells) {
    EXPECT_TRUE(set.Append({static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(y),
                            static_cast<std::uint32_t>(x), 1})
                    .ok());
  }
  return set;
}

Cells CellsIn(const CellSet& set) {
  Cells cells;
  for (std::uint64_t i = 0; i < set.size(); ++i) {
    const Point p = set.Cell(i);
    cells.emplace(p.z, p.y, p.x);
  }
  return cells;
}

TEST(CellSet, HoldsAndJoinsRandomCellsAsASetDoes) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    Cells a, b;
    for (int i = 0; i < 120; ++i) {
      (random() % 2 ? a : b).emplace(random() % 2, random() % 8, random() % 16);
    }
    const CellSet first = SetOf(a, 4), second = SetOf(b, 4);
    ASSERT_EQ(CellsIn(first), a);
    Cells both = a;
    both.insert(b.begin(), b.end());
    const auto joined = CellSet::Union(first, second);
    ASSERT_TRUE(joined.ok());
    EXPECT_EQ(*joined, SetOf(both, 4));
    for (int z = -1; z < 3; ++z) {
      for (int y = 0; y < 9; ++y) {
        for (int x = 0; x < 17; ++x) {
          ASSERT_EQ(joined->Contains({z, y, x}), both.contains({z, y, x})) << z << y << x;
        }
      }
    }
    std::string text;
    joined->EncodeTo(text);
    std::string_view left = text;
    const auto again = CellSet::DecodeFrom(left, {2, 32, 64});
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(*again, *joined);
  }
}

TEST(CellSet, TakesRunsInRowOrderOnly) {
  CellSet set(2);
  ASSERT_TRUE(set.Append({0, 3, 4, 2}).ok());
  EXPECT_FALSE(set.Append({0, 3, 5, 1}).ok());
  EXPECT_FALSE(set.Append({0, 2, 9, 1}).ok());
  EXPECT_FALSE(set.Append({0, 4, 0, 0}).ok());
  ASSERT_TRUE(set.Append({0, 3, 6, 1}).ok());
  EXPECT_EQ(set.runs().size(), 1u);
  EXPECT_EQ(set.Pixels(), 12u);
  const Point third = set.Cell(2);
  EXPECT_EQ(Point(third.z, CentreOf(third.y, set.step()), CentreOf(third.x, set.step())),
            Point(0, 7, 13));
}

PositionIndex Example() {
  PositionIndex index{{1, 100, 90}, {}};
  index.classes.push_back({3, "gleason_3", 500, SetOf({{0, 1, 1}, {0, 1, 2}, {0, 5, 0}}, 16)});
  index.classes.push_back({4, "gleason_4", 1, SetOf({{0, 99, 89}})});
  return index;
}

TEST(PositionIndex, SurvivesATripAndIsNamedByItsBytes) {
  const std::string text = EncodePositionIndex(Example());
  EXPECT_LT(text.size(), 100u);
  const auto again = DecodePositionIndex(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Example());
  EXPECT_EQ(EncodePositionIndex(*again), text);
  EXPECT_EQ(again->Find("gleason_4")->cells.size(), 1u);
  EXPECT_EQ(again->Find("benign"), nullptr);
}

TEST(PositionIndex, EveryCutAndEveryFlippedByteIsRefused) {
  const std::string text = EncodePositionIndex(Example());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(DecodePositionIndex(text.substr(0, i)).ok()) << i;
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 0x21);
    EXPECT_FALSE(DecodePositionIndex(other).ok()) << i;
  }
}

TEST(PositionIndex, RefusesWhatNoWriterWritesThoughItsChecksumIsRight) {
  for (const Extent& size : {Extent{0, 100, 90}, Extent{1, 0, 90}, Extent{1, 100, 0}}) {
    const auto index = DecodePositionIndex(EncodePositionIndex({size, {}}));
    EXPECT_EQ(MessageOf(index.status()), "read position index: the size of the image");
  }
  for (const ClassCells& one :
       {ClassCells{1, "benign", 7, SetOf({})}, ClassCells{1, "benign", 0, SetOf({{0, 0, 0}})}}) {
    const auto index = DecodePositionIndex(EncodePositionIndex({{1, 100, 90}, {one}}));
    EXPECT_EQ(MessageOf(index.status()), "read position index: pixels without cells");
  }
}

TEST(CellSet, ComesBackWhateverTheDistancesOfItsRuns) {
  std::minstd_rand random(5);
  const auto one_of = [&random](std::initializer_list<std::uint32_t> values) {
    return *(values.begin() + random() % values.size());
  };
  CellSet cells(4);
  CellRun run{};
  for (int i = 0; i < 500; ++i) {
    const std::uint32_t down = one_of({0, 0, 0, 1, 127, 128, 300});
    if (one_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) != 0) {
      run = {run.z + one_of({1, 200}), 0, 0, 0};
    } else if (down != 0) {
      run = {run.z, run.y + down, 0, 0};
    }
    run.x += run.count + one_of({1, 5, 127, 128, 4'000});
    run.count = one_of({1, 2, 127, 128, 9'000});
    ASSERT_TRUE(cells.Append(run).ok());
  }
  std::string text;
  cells.EncodeTo(text);
  std::string_view rest = text;
  const auto again = CellSet::DecodeFrom(rest, {1 << 20, 1 << 30, 1 << 30});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, cells);
  EXPECT_EQ(again->size(), cells.size());
  EXPECT_TRUE(rest.empty());
}

TEST(CellSet, RefusesRunsThatNoWriterWrites) {
  const auto refusal = [](const std::string& runs) {
    // A step of 4, one run after a first one at row 1, cells 2 to 4, of a plane of 5 rows of 9.
    std::string text = std::string({4, 2, 0, 1, 2, 3}) + runs;
    std::string_view rest = text;
    return std::string(MessageOf(CellSet::DecodeFrom(rest, {2, 20, 36}).status()));
  };
  constexpr const char* kOutside = "read cells: a cell outside the image";
  EXPECT_EQ(refusal({0, 0, 1, 3}), "");
  EXPECT_EQ(refusal({0, 0, 1, 0}), "read cells: a run without cells, or past the end of a row");
  EXPECT_EQ(refusal({0, 0, 1, 4}), kOutside);
  EXPECT_EQ(refusal({0, 3, 8, 1}), "");
  EXPECT_EQ(refusal({0, 3, 9, 1}), kOutside);
  EXPECT_EQ(refusal({0, 4, 0, 1}), kOutside);
  EXPECT_EQ(refusal({2, 0, 0, 1}), kOutside);
  EXPECT_EQ(refusal({0, 1, 0}), "read cells: cut short");
}

TEST(PositionIndex, JoinsPartsOfOneImage) {
  PositionIndex whole = Example();
  PositionIndex part{
      {1, 100, 90},
      {{1, "benign", 7, SetOf({{0, 0, 0}})}, {3, "gleason_3", 20, SetOf({{0, 1, 3}}, 16)}}};
  ASSERT_TRUE(whole.Merge(part).ok());
  ASSERT_EQ(whole.classes.size(), 3u);
  EXPECT_EQ(whole.classes[0].name, "benign");
  EXPECT_EQ(whole.classes[1].pixels, 520u);
  EXPECT_EQ(whole.classes[1].cells.size(), 4u);
  part.classes[0].name = "stroma";
  EXPECT_FALSE(whole.Merge(part).ok());
  part.size.x = 91;
  EXPECT_FALSE(Example().Merge(part).ok());
}

}  // namespace
}  // namespace patchbay::plan
