// Patches of one slice of a volume, along any axis: geometry stays in the slice, and no other op of
// the chain changes where a voxel comes from.
#include <algorithm>
#include <cstring>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/chain/chain.h"
#include "runtime/core/strings.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/volume_steps.h"

namespace patchbay::ops {
namespace {

constexpr std::uint64_t kFlatDraws = 25;

/// Every voxel of a box as `value` says of its place.
template <typename T, typename Value>
std::vector<T> VoxelsOf(const Box& box, const Value& value) {
  std::vector<T> voxels;
  for (std::int64_t z = box.z; z < box.z + box.depth; ++z) {
    for (std::int64_t y = box.y; y < box.y + box.height; ++y) {
      for (std::int64_t x = box.x; x < box.x + box.width; ++x) voxels.push_back(value(z, y, x));
    }
  }
  return voxels;
}

template <typename T>
TensorView BoxView(std::vector<T>& voxels, DType dtype, const Box& box) {
  return ContiguousView<4>(reinterpret_cast<std::byte*>(voxels.data()), dtype,
                           {box.depth, box.height, box.width, std::int64_t{1}});
}

/// The finished patch at the image's origin, of an image whose voxels are `value` of their place.
template <typename Value>
std::vector<float> MadeSlice(const Chain& chain, std::uint64_t ordinal, const Value& value) {
  const plan::VolumeFacts facts = VolumeStepFacts();
  const Box box = chain.SourceBox(WholeOf(chain.options().patch), VolumeStepKey(ordinal), facts);
  std::vector<std::int16_t> voxels = VoxelsOf<std::int16_t>(box, value);
  std::vector<std::byte> out(chain.patch_bytes()), scratch;
  const Status status = chain.Run(BoxView(voxels, DType::kInt16, box), VolumeStepKey(ordinal), out,
                                  scratch, nullptr, &facts);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<float> values(out.size() / sizeof(float));
  std::memcpy(values.data(), out.data(), out.size());
  return values;
}

/// The label that each voxel of a patch gets, of an image whose labels tell neighbours apart.
std::vector<std::uint8_t> Labels(const Chain& chain, std::uint64_t ordinal) {
  const plan::VolumeFacts facts = VolumeStepFacts();
  const Box box = chain.SourceBox(WholeOf(chain.options().patch), VolumeStepKey(ordinal), facts);
  auto labels = VoxelsOf<std::uint8_t>(
      box, [](auto z, auto y, auto x) { return (101 * z + 59 * y + 7 * x) & 255; });
  std::vector<std::uint8_t> out(static_cast<std::size_t>(chain.options().patch.Pixels()));
  std::vector<std::byte> scratch;
  const Status status = chain.RunLabels(BoxView(labels, DType::kUint8, box), VolumeStepKey(ordinal),
                                        out, scratch, facts);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

StatusOr<Chain> FlatChain(const std::string& steps, const Extent& patch) {
  ChainOptions options = VolumeStepOptions(steps, patch, DType::kInt16);
  options.kind = plan::PatchKind::kVolume;
  return Chain::Compile(options);
}

constexpr char kTurn[] = R"({"affine": {"p": 1, "degrees": [-40, 40], "scale": [0.7, 1.4]}})";
constexpr char kBend[] = R"({"elastic": {"p": 1, "points": 5, "amplitude": 0.9}})";
constexpr char kWindow[] = R"({"window": {"range": [-1000, 1000]}})";

TEST(FlatPatches, GeometryStaysInTheSliceAlongAnyAxis) {
  const Extent sides[] = {{1, 14, 17}, {13, 1, 17}, {13, 14, 1}};
  for (int axis = 0; axis < 3; ++axis) {
    for (const std::string& steps :
         {StrCat(kTurn, ",", kBend),
          StrCat(kTurn, ",", kBend, R"(,{"flip": {"axes": ["z", "y",)", R"( "x"]}},)", kWindow)}) {
      const auto chain = FlatChain(steps, sides[axis]);
      ASSERT_TRUE(chain.ok()) << chain.status();
      const bool windowed = steps.find("window") != std::string::npos;
      const float own = windowed ? 0.5f : 0.0f;  // slice 0 holds 0, the others are far from it
      bool has_moved = false;
      for (std::uint64_t ordinal = 0; ordinal < kFlatDraws; ++ordinal) {
        const auto slice = MadeSlice(*chain, ordinal, [axis](auto z, auto y, auto x) {
          return 100 * (axis == 0 ? z : axis == 1 ? y : x);
        });
        ASSERT_THAT(slice, testing::Each(own)) << axis << " " << steps << " ordinal " << ordinal;
        has_moved = has_moved || Labels(*chain, ordinal) != Labels(*chain, ordinal + 1);
      }
      EXPECT_TRUE(has_moved) << steps;
    }
  }
}

TEST(FlatPatches, TheSliceIsTurnedAndScaledInMillimetres) {
  const auto chain =
      FlatChain(R"({"affine": {"p": 1, "degrees": [90, 90], "scale": [2, 2]}})", {1, 9, 9});
  ASSERT_TRUE(chain.ok()) << chain.status();
  plan::VolumeFacts facts;
  facts.spacing = {5, 2, 1};
  const Box box = chain->SourceBox(WholeOf({1, 9, 9}), VolumeStepKey(0), facts);
  // 9 voxels of 1 mm along x, turned to y, are 4.5 of 2 mm, and half of them are shown.
  EXPECT_LE(box.depth, 3);
  EXPECT_LE(box.height, 5);
  EXPECT_GE(box.width, 9);
  EXPECT_LE(box.width, 12);
}

TEST(FlatPatches, ALineStaysALine) {
  const auto chain = FlatChain(StrCat(kTurn, ",", kWindow), {1, 1, 17});
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (std::uint64_t ordinal = 0; ordinal < kFlatDraws; ++ordinal) {
    ASSERT_THAT(MadeSlice(*chain, ordinal, [](auto z, auto y, auto) { return 100 * z + 31 * y; }),
                testing::Each(0.5f));
  }
}

/// Where voxels come from, draw by draw.
std::vector<std::vector<std::uint8_t>> Places(const Chain& chain) {
  std::vector<std::vector<std::uint8_t>> places;
  for (std::uint64_t ordinal = 0; ordinal < kFlatDraws; ++ordinal) {
    places.push_back(Labels(chain, ordinal));
  }
  return places;
}

TEST(FlatPatches, NoOtherOpChangesWhereAVoxelComesFrom) {
  // Every op of a config that does not move pixels, combined with each op that does.
  const std::vector<std::string> moves = {R"({"flip": {}})",
                                          R"({"flip": {"axes": ["y", "x"]}})",
                                          R"({"crop": {"margin": [2, 3]}})",
                                          R"({"rotate90": {}})",
                                          kTurn,
                                          kBend,
                                          StrCat(kTurn, ",", kBend)};
  std::vector<std::string> others = VolumeSteps();
  others.erase(std::remove_if(others.begin(), others.end(),
                              [](const std::string& step) {
                                return step.find("flip") != step.npos ||
                                       step.find("affine") != step.npos ||
                                       step.find("elastic") != step.npos;
                              }),
               others.end());
  for (const char* step : {R"({"normalize": {"mean": [3]}})", R"({"hed_jitter": {"p": 1}})",
                           R"({"color_jitter": {"p": 1, "hue": [-0.1, 0.1]}})",
                           R"({"stain_jitter": {"p": 1}})", R"({"icc_to_srgb": {}})",
                           R"({"ct_normalize": {"lower": 0, "upper": 9, "mean": 1, "std": 2}})"}) {
    others.emplace_back(step);
  }
  int compared = 0;
  for (const Extent& patch : {Extent{1, 14, 14}, Extent{9, 14, 14}, Extent{9, 1, 14}}) {
    for (const std::string& move : moves) {
      const auto alone = FlatChain(move, patch);
      if (!alone.ok()) continue;  // rotate90 and folds need other patches
      const auto places = Places(*alone);
      for (const std::string& other : others) {
        const auto both = FlatChain(StrCat(other, ",", move), patch);
        if (!both.ok()) continue;  // refused by key, so nothing is made
        ASSERT_EQ(Places(*both), places) << move << " beside " << other << " " << patch.ToString();
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(FlatPatches, OpsOfSlidesBesideOnesThatTurnAVolumeAreRefusedByKey) {
  const auto refusal = [](const std::string& steps) {
    return std::string(FlatChain(steps, {1, 14, 14}).status().message());
  };
  EXPECT_THAT(refusal(StrCat(R"({"rotate90": {}},)", kTurn)),
              testing::HasSubstr("key 'augment[0].rotate90': for 2-D images"));
  EXPECT_THAT(refusal(R"({"affine": {"shear": [0, 5]}})"),
              testing::HasSubstr("shear: for 2-D images only"));
  ChainOptions slide = VolumeStepOptions(kTurn, {1, 14, 14}, DType::kUint8);
  slide.kind = plan::PatchKind::kVolume;
  slide.channels = 3;
  EXPECT_THAT(std::string(Chain::Compile(slide).status().message()),
              testing::HasSubstr("these have 3; of 2-D images patch.size is [y, x]"));
}

TEST(FlatPatches, ARangeForEachAxisTurnsAboutThatAxis) {
  const Extent patch{9, 9, 9};
  const auto chain =
      FlatChain(R"({"affine": {"p": 1, "degrees": [[-30, 30], [0, 0], [0, 0]]}})", patch);
  ASSERT_TRUE(chain.ok()) << chain.status();
  std::set<float> seen;
  for (std::uint64_t ordinal = 0; ordinal < kFlatDraws; ++ordinal) {
    // About z alone: a voxel keeps its slice, to the rounding of float.
    const auto made = MadeSlice(*chain, ordinal, [](auto z, auto, auto) { return 100 * z; });
    for (std::size_t i = 0; i < made.size(); ++i) {
      ASSERT_NEAR(made[i], 100 * static_cast<float>(i / 81), 1e-2);
    }
    seen.insert(MadeSlice(*chain, ordinal, [](auto, auto y, auto) { return 100 * y; })[0]);
  }
  EXPECT_EQ(seen.size(), kFlatDraws);
  const auto one = FlatChain(R"({"affine": {"p": 1, "degrees": [-30, 30]}})", patch);
  const auto three =
      FlatChain(R"({"affine": {"p": 1, "degrees": [[-30, 30], [-30, 30], [-30, 30]]}})", patch);
  EXPECT_EQ(Places(*one), Places(*three));
  const auto refusal = [&](const std::string& degrees) {
    return std::string(
        FlatChain(StrCat(R"({"affine": {"degrees": )", degrees, "}}"), patch).status().message());
  };
  EXPECT_THAT(refusal("[[0, 1], [0, 1]]"), testing::HasSubstr("expected 3 lists, got 2"));
  EXPECT_THAT(refusal("[[0, 1], [0, 1], [0]]"), testing::HasSubstr("expected 2 values, got 1"));
  EXPECT_THAT(refusal("[[0, 1], [0, 1], 3]"), testing::HasSubstr("expected a list of numbers"));
  EXPECT_THAT(refusal("[[0, 1], [2, 1], [0, 1]]"), testing::HasSubstr("above the high one"));
  EXPECT_THAT(refusal("[[0, 1], [0, 1], [0, 361]]"), testing::HasSubstr("361 is out of range"));
  EXPECT_THAT(refusal("[0, [1, 2]]"), testing::HasSubstr("expected a list of numbers"));
  ChainOptions slide = VolumeStepOptions(R"({"affine": {"degrees": [[0, 1], [0, 1], [0, 2]]}})",
                                         Flat(9, 9), DType::kUint8);
  EXPECT_THAT(std::string(Chain::Compile(slide).status().message()),
              testing::HasSubstr("degrees: a range for each axis is for volumes"));
}

}  // namespace
}  // namespace patchbay::ops
