// flip, rotate90 and crop: closed forms, the dihedral group, draws, refusals.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "ops/crop/crop.h"
#include "ops/flip/flip.h"
#include "ops/rotate90/rotate90.h"
#include "tests/contract/known_ops.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

OpUnderTest FlipOp(double horizontal, double vertical) {
  return {.name = StrCat("flip ", horizontal, " ", vertical),
          .step = {{"flip", {{"horizontal", horizontal}, {"vertical", vertical}}}},
          .expected = [=](const ReferenceImage& source, const DrawKey& key) {
            const FlipParameters p = DrawFlip({horizontal, vertical}, key);
            return Mirrored(source, p.horizontal, p.vertical);
          }};
}

OpUnderTest RotateOp() {
  return {.name = "rotate90",
          .step = {{"rotate90", Json::object()}},
          .square = true,
          .expected = [](const ReferenceImage& source, const DrawKey& key) {
            return Turned(source, DrawRotate90(key).turns);
          }};
}

OpUnderTest CropOp(std::int64_t margin_y, std::int64_t margin_x, bool random) {
  return {
      .name = StrCat("crop ", margin_y, " ", margin_x),
      .step = {{"crop",
                {{"margin", {margin_y, margin_x}}, {"position", random ? "random" : "center"}}}},
      .expected = [=](const ReferenceImage& source, const DrawKey& key) {
        const CropParameters p = DrawCrop({{margin_y, margin_x}, random}, key);
        return Window(source, p.y, p.x, source.height - 2 * margin_y, source.width - 2 * margin_x);
      }};
}

/// A patch of one channel under a chain, its source written as text, and the chain's draws.
struct Spelled {
  ChainOptions options;

  Spelled(const Json& ops, std::int64_t height, std::int64_t width) {
    options.augment = ops;
    options.patch.y = height;
    options.patch.x = width;
    options.channels = 1;
    options.dtype = DType::kUint8;
  }
  std::string operator()(std::string text, std::uint64_t ordinal = 0) const {
    const auto chain = Chain::Compile(options);
    EXPECT_TRUE(chain.ok()) << chain.status();
    const TensorView source =
        ContiguousView<3>(reinterpret_cast<std::byte*>(text.data()), DType::kUint8,
                          {chain->source_extent().y, chain->source_extent().x, 1});
    std::vector<std::byte> out(chain->patch_bytes()), scratch;
    EXPECT_TRUE(chain->Run(source, Key(ordinal), out, scratch).ok());
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }
  /// The key with which the op at `place` of the chain draws.
  DrawKey OwnKeyAt(std::size_t place, std::uint64_t ordinal) const {
    DrawKey own = Key(ordinal);
    own.op_occurrence = plan::Occurrence(plan::SortOps(Json::array(), options.augment)->at(place));
    return own;
  }
  /// An ordinal whose rotate90, at `place` of the chain, turns that often.
  std::uint64_t OrdinalThatTurns(int turns, std::size_t place) const {
    std::uint64_t ordinal = 0;
    while (DrawRotate90(OwnKeyAt(place, ordinal)).turns != turns) ++ordinal;
    return ordinal;
  }
  static DrawKey Key(std::uint64_t ordinal) { return {3, 0, ordinal, 0, DrawStream::kParameters}; }
};

Json FlipStep(int horizontal, int vertical) {
  return {{"flip", {{"horizontal", horizontal}, {"vertical", vertical}}}};
}
const Json kRotateStep = {{"rotate90", Json::object()}};

TEST(Flip, MirrorsAsTheNamesSay) {
  const auto flipped = [&](int horizontal, int vertical) {
    return Spelled(Json::array({FlipStep(horizontal, vertical)}), 2, 3)("abcdef");
  };
  EXPECT_EQ(flipped(0, 0), "abcdef");
  EXPECT_EQ(flipped(1, 0), "cbafed");
  EXPECT_EQ(flipped(0, 1), "defabc");
  EXPECT_EQ(flipped(1, 1), "fedcba");
}

TEST(Rotate90, TurnsAgainstTheClockLikeNumpy) {
  const Spelled chain(Json::array({kRotateStep}), 3, 3);
  const auto turned = [&](int turns) {
    return chain("abcdefghi", chain.OrdinalThatTurns(turns, 0));
  };
  EXPECT_EQ(turned(0), "abcdefghi");
  EXPECT_EQ(turned(1), "cfibehadg");
  EXPECT_EQ(turned(2), "ihgfedcba");
  EXPECT_EQ(turned(3), "gdahebifc");
}

TEST(Crop, TakesTheWindow) {
  const Spelled chain(Json::array({Json{{"crop", {{"margin", {1, 1}}}}}}), 1, 2);
  const std::string source = "abcdefghijkl";  // 3 x 4
  std::set<std::string> windows;
  for (std::uint64_t ordinal = 0; ordinal < 200; ++ordinal) {
    const CropParameters p = DrawCrop({{1, 1}, true}, chain.OwnKeyAt(0, ordinal));
    const std::string window = chain(source, ordinal);
    EXPECT_EQ(window, source.substr(static_cast<std::size_t>(p.y * 4 + p.x), 2));
    windows.insert(window);
  }
  EXPECT_EQ(windows.size(), 9u);
}

TEST(FlipAndRotate90, FormTheDihedralGroup) {
  // Every element is a turn after an optional mirror; composing two must give a third, and the
  // images of a square with no symmetry tell all eight apart.
  const std::string square = "abcdefghi";
  const auto apply = [](const std::string& text, bool mirror, int turns) {
    const Spelled chain(Json::array({FlipStep(mirror ? 1 : 0, 0), kRotateStep}), 3, 3);
    return chain(text, chain.OrdinalThatTurns(turns, 1));
  };
  std::map<std::string, std::pair<bool, int>> elements;
  for (const bool mirror : {false, true}) {
    for (int turns = 0; turns < 4; ++turns)
      elements[apply(square, mirror, turns)] = {mirror, turns};
  }
  ASSERT_EQ(elements.size(), 8u);
  for (const auto& [first, a] : elements) {
    bool has_inverse = false;
    for (const auto& [second, b] : elements) {
      const std::string both = apply(first, b.first, b.second);
      ASSERT_TRUE(elements.count(both)) << "not closed";
      // Mirroring turns the sense of rotation: r^k m = m r^-k.
      const int expected_turns = ((b.first ? -a.second : a.second) + b.second + 8) % 4;
      EXPECT_EQ(elements[both], std::pair(a.first != b.first, expected_turns));
      has_inverse |= both == square;
    }
    EXPECT_TRUE(has_inverse);
  }
}

TEST(Draws, HaveTheDeclaredProbabilities) {
  constexpr int kDraws = 40'000;
  int horizontal = 0, vertical = 0, both = 0;
  std::array<int, 4> turns{};
  for (int i = 0; i < kDraws; ++i) {
    const DrawKey key{11, 1, static_cast<std::uint64_t>(i), 2, DrawStream::kParameters};
    const FlipParameters p = DrawFlip({0.5, 0.25}, key);
    horizontal += p.horizontal;
    vertical += p.vertical;
    both += p.horizontal && p.vertical;
    ++turns[static_cast<std::size_t>(DrawRotate90(key).turns)];
  }
  // Five standard deviations of a binomial.
  EXPECT_NEAR(horizontal, kDraws * 0.5, 500);
  EXPECT_NEAR(vertical, kDraws * 0.25, 434);
  EXPECT_NEAR(both, kDraws * 0.125, 331);
  for (const int n : turns) EXPECT_NEAR(n, kDraws * 0.25, 434);
}

TEST(Draws, ProbabilityZeroNeverAndOneAlways) {
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const DrawKey key{3, 0, i, 0, DrawStream::kParameters};
    EXPECT_EQ(DrawFlip({0, 1}, key), (FlipParameters{false, true}));
  }
}

TEST(Draws, CropReachesEveryPlaceWithinItsMarginsAndNoOther) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> places;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    const CropParameters p = DrawCrop({{2, 1}, true}, {3, 0, i, 0, DrawStream::kParameters});
    ++places[{p.y, p.x}];
  }
  EXPECT_EQ(places.size(), 15u);
  EXPECT_EQ(places.begin()->first, std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(places.rbegin()->first, std::pair(std::int64_t{4}, std::int64_t{2}));
  EXPECT_EQ(DrawCrop({{2, 1}, false}, {}), (CropParameters{2, 1}));
}

TEST(Flip, KeepsTheOpContract) {
  ExpectOpContract(FlipOp(1, 0));
  ExpectOpContract(FlipOp(0.5, 0.5));
}
TEST(Rotate90, KeepsTheOpContract) { ExpectOpContract(RotateOp()); }
TEST(Crop, KeepsTheOpContract) {
  ExpectOpContract(CropOp(2, 5, true));
  ExpectOpContract(CropOp(3, 0, false));
}

TEST(GeometryOnGpu, HasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  ExpectDeviceTwin(FlipOp(0.5, 0.5));
  ExpectDeviceTwin(RotateOp());
  ExpectDeviceTwin(CropOp(2, 5, true));
}

}  // namespace
}  // namespace patchbay::ops
