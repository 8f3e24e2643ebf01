// flip, rotate90 and crop: closed forms, the dihedral group, draws, refusals.
#include <map>

#include <gtest/gtest.h>

#include "ops/crop.h"
#include "ops/flip.h"
#include "ops/rotate90.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

OpUnderTest FlipOp(FlipParameters p) {
  return {.name = "flip",
          .in = DType::kUint16,
          .out = DType::kUint16,
          .run = [p](const auto& in, const auto& out) { return Flip(p, in, out); },
          .launch = [p](const auto& in, const auto& out,
                        auto stream) { return LaunchFlip(p, in, out, stream); }};
}

OpUnderTest RotateOp(int turns) {
  const Rotate90Parameters p{turns};
  return {.name = StrCat("rotate90 by ", turns),
          .run = [p](const auto& in, const auto& out) { return Rotate90(p, in, out); },
          .launch = [p](const auto& in, const auto& out,
                        auto stream) { return LaunchRotate90(p, in, out, stream); },
          .shape =
              [turns](std::int64_t h, std::int64_t w) {
                return turns % 2 != 0 ? std::array{w, h} : std::array{h, w};
              }};
}

OpUnderTest CropOp() {
  return {.name = "crop",
          .in = DType::kFloat32,
          .out = DType::kFloat32,
          .run =
              [](const auto& in, const auto& out) {
                return Crop({0, 0}, in, out);
              },
          .launch =
              [](const auto& in, const auto& out, auto stream) {
                return LaunchCrop({0, 0}, in, out, stream);
              },
          .shape =
              [](std::int64_t h, std::int64_t w) {
                return std::array{(h + 1) / 2, (w + 2) / 3};
              }};
}

/// A 2 x 3 image of one channel.
struct Tiny {
  std::vector<std::byte> memory;
  TensorView view;
  Tiny(std::int64_t h, std::int64_t w, std::string text = "")
      : memory(static_cast<std::size_t>(h * w), std::byte{'.'}) {
    for (std::size_t i = 0; i < text.size(); ++i) memory[i] = static_cast<std::byte>(text[i]);
    view = ContiguousView<3>(memory.data(), DType::kUint8, {h, w, 1});
  }
  std::string Text() const { return {reinterpret_cast<const char*>(memory.data()), memory.size()}; }
};

TEST(Flip, MirrorsAsTheNamesSay) {
  const Tiny in(2, 3, "abcdef");
  const auto flipped = [&](bool horizontal, bool vertical) {
    Tiny out(2, 3);
    EXPECT_TRUE(Flip({horizontal, vertical}, in.view, out.view).ok());
    return out.Text();
  };
  EXPECT_EQ(flipped(false, false), "abcdef");
  EXPECT_EQ(flipped(true, false), "cbafed");
  EXPECT_EQ(flipped(false, true), "defabc");
  EXPECT_EQ(flipped(true, true), "fedcba");
}

TEST(Rotate90, TurnsAgainstTheClockLikeNumpy) {
  const Tiny in(2, 3, "abcdef");
  const auto turned = [&](int turns) {
    Tiny out(turns % 2 != 0 ? 3 : 2, turns % 2 != 0 ? 2 : 3);
    EXPECT_TRUE(Rotate90({turns}, in.view, out.view).ok());
    return out.Text();
  };
  EXPECT_EQ(turned(0), "abcdef");
  EXPECT_EQ(turned(1), "cfbead");
  EXPECT_EQ(turned(2), "fedcba");
  EXPECT_EQ(turned(3), "daebfc");
}

TEST(Crop, TakesTheWindow) {
  const Tiny in(2, 3, "abcdef");
  Tiny out(1, 2);
  ASSERT_TRUE(Crop({1, 1}, in.view, out.view).ok());
  EXPECT_EQ(out.Text(), "ef");
  for (const CropParameters p : {CropParameters{2, 0}, CropParameters{0, 2}, CropParameters{-1, 0},
                                 CropParameters{INT64_MAX, INT64_MAX}, CropParameters{0, -1}}) {
    EXPECT_EQ(Crop(p, in.view, out.view).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(FlipAndRotate90, FormTheDihedralGroup) {
  // Every element is a turn after an optional mirror; composing two must give a third, and the
  // images of a square with no symmetry tell all eight apart.
  const std::string square = "abcdefghi";
  const auto apply = [](const std::string& text, bool mirror, int turns) {
    const Tiny in(3, 3, text);
    Tiny middle(3, 3), out(3, 3);
    EXPECT_TRUE(Flip({mirror, false}, in.view, middle.view).ok());
    EXPECT_TRUE(Rotate90({turns}, middle.view, out.view).ok());
    return out.Text();
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
    const CropParameters p = DrawCrop({2, 1, true}, {3, 0, i, 0, DrawStream::kParameters});
    ++places[{p.y, p.x}];
  }
  EXPECT_EQ(places.size(), 15u);
  EXPECT_EQ(places.begin()->first, std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(places.rbegin()->first, std::pair(std::int64_t{4}, std::int64_t{2}));
  EXPECT_EQ(DrawCrop({2, 1, false}, {}), (CropParameters{2, 1}));
}

TEST(Flip, KeepsTheOpContract) {
  ExpectOpContract(FlipOp({true, false}));
  ExpectOpContract(FlipOp({true, true}));
}
TEST(Rotate90, KeepsTheOpContract) {
  for (int turns = 0; turns < 4; ++turns) ExpectOpContract(RotateOp(turns));
  Tiny in(2, 2), out(2, 2);
  EXPECT_FALSE(Rotate90({4}, in.view, out.view).ok());
  EXPECT_FALSE(Rotate90({-1}, in.view, out.view).ok());
}
TEST(Crop, KeepsTheOpContract) { ExpectOpContract(CropOp()); }

TEST(GeometryOnGpu, HasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  ExpectDeviceTwin(FlipOp({true, false}));
  ExpectDeviceTwin(FlipOp({false, true}));
  for (int turns = 0; turns < 4; ++turns) ExpectDeviceTwin(RotateOp(turns));
  ExpectDeviceTwin(CropOp());
}

}  // namespace
}  // namespace patchbay::ops
