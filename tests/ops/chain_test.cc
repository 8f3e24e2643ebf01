// The chain: equal to its ops one after another, on every path; draws; refusals.
#include "ops/chain/chain.h"

#include <cstring>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/cast/cast.h"
#include "ops/crop/crop.h"
#include "ops/flip/flip.h"
#include "ops/lanes/processor.h"
#include "ops/normalize/normalize.h"
#include "ops/rotate90/rotate90.h"
#include "runtime/core/hash.h"
#include "tests/contract/known_ops.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

Json Normalization(int channels) {
  Json mean = Json::array(), std = Json::array();
  for (int c = 0; c < channels; ++c) {
    mean.push_back(0.7 - 0.15 * (c % 2));
    std.push_back(0.2 + 0.01 * c);
  }
  return Json{{"normalize", {{"scale", 255}, {"mean", mean}, {"std", std}}}};
}

Json Geometry(std::uint64_t seed) {
  static const std::vector<Json> kOps = {
      Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}},
      Json{{"crop", {{"margin", {3, 3}}}}},
      Json{{"crop", {{"margin", {2, 2}}, {"position", "center"}}}}};
  Json list = Json::array();
  for (std::uint64_t i = 0; i < seed % 5; ++i) list.push_back(kOps[(seed >> (3 * i + 4)) % 4]);
  return list;
}

std::vector<std::byte> Ran(const Chain& chain, const ConstTensorView& source, const DrawKey& key) {
  std::vector<std::byte> out(chain.patch_bytes(), std::byte{0xEE}), scratch;
  const Status status = chain.Run(source, key, out, scratch);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

/// The ops applied one after another to plain numbers, then cast, then laid out.
std::vector<std::byte> Staged(const Chain& chain, const Spaced& source, const DrawKey& key) {
  const ChainOptions& o = chain.options();
  ReferenceImage image = ReferenceOf(source);
  DrawKey own = key;
  const auto ordered = plan::SortOps(o.preprocess, o.augment);
  EXPECT_TRUE(ordered.ok()) << ordered.status();
  for (const plan::OpStep& op : *ordered) {
    own.op_occurrence = plan::Occurrence(op);
    if (op.op->number == FlipOptions::kNumber) {
      const FlipParameters flip = DrawFlip({}, own);
      image = Mirrored(image, flip.horizontal, flip.vertical);
    } else if (op.op->number == Rotate90Options::kNumber) {
      image = Turned(image, DrawRotate90(own).turns);
    } else if (op.op->number == CropOptions::kNumber) {
      const auto crop = plan::ReadOptions<CropOptions>(op.options);
      const CropParameters place = DrawCrop(crop, own);
      image = Window(image, place.y, place.x, image.height - 2 * crop.margin[0],
                     image.width - 2 * crop.margin[1]);
    } else {
      image = Normalized(image, plan::ReadOptions<NormalizeOptions>(op.options));
    }
  }
  return Finished(image, o.dtype, o.layout == PatchLayout::kNchw);
}

TEST(Chain, EqualsItsOpsOneAfterAnotherOnEveryPath) {
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const DType dtype : kPatchTypes) {
      ChainOptions options;
      options.channels = seed % 4 == 3 ? static_cast<int>(1 + seed % 5) : 3;
      // Odd sides leave tails of every length; 64 and 128 are whole vectors.
      const std::int64_t side = seed % 3 == 0 ? 64 * (1 + static_cast<std::int64_t>(seed % 2))
                                              : 1 + static_cast<std::int64_t>(seed * 7 % 90);
      options.patch.y = options.patch.x = side;
      options.dtype = dtype;
      options.layout = seed % 2 != 0 ? PatchLayout::kNhwc : PatchLayout::kNchw;
      options.augment = Geometry(seed * 0x9E3779B97F4A7C15u >> 20);
      if (seed % 5 != 0) options.preprocess.push_back(Normalization(options.channels));
      const DrawKey key{seed, 3, seed * 1000 + 1, 0, DrawStream::kParameters};
      for (const CpuLevel level : kCpuLevels) {
        options.cpu_level = level;
        const auto chain = Chain::Compile(options);
        ASSERT_TRUE(chain.ok()) << chain.status();
        SCOPED_TRACE(StrCat("seed ", seed, " ", NameOf(dtype), " side ", side, " channels ",
                            options.channels, " path ", chain->cpu_path(), " ",
                            DumpJson(options.augment)));
        const Spaced source = NoiseSource(*chain, seed % 7 == 0 ? 11 : 0, seed % 11 == 0 ? 1 : 0);
        ASSERT_EQ(Ran(*chain, source.view, key), Staged(*chain, source, key));
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 60 * 4 * 3);
}

TEST(Chain, PatchesThatAreNotSquareAreFlippedAndCropped) {
  ChainOptions options;
  options.patch.y = 37;
  options.patch.x = 90;
  options.dtype = DType::kFloat16;
  options.augment =
      Json::array({Json{{"crop", {{"margin", {5, 9}}}}}, Json{{"flip", Json::object()}}});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain->SourceBox(Box2D(100, 200, 37, 90), {}), Box2D(95, 191, 47, 108));
  const Spaced source = NoiseSource(*chain);
  for (std::uint64_t ordinal = 0; ordinal < 40; ++ordinal) {
    const DrawKey key{1, 0, ordinal, 0, DrawStream::kParameters};
    ASSERT_EQ(Ran(*chain, source.view, key), Staged(*chain, source, key));
  }
}

TEST(Chain, MirrorsAPatchWhereItLies) {
  std::set<std::pair<bool, bool>> seen;
  for (std::uint64_t ordinal = 0; ordinal < 200; ++ordinal) {
    ChainOptions options;
    options.augment = Json::array({Json{{"flip", Json::object()}}});
    options.patch.y = static_cast<std::int64_t>(1 + ordinal % 7);
    options.patch.x = static_cast<std::int64_t>(1 + ordinal % 23);
    options.channels = static_cast<int>(1 + ordinal % 4);
    options.dtype = DType::kUint8;
    options.layout = PatchLayout::kNhwc;
    const auto chain = Chain::Compile(options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const DrawKey key{1, 0, ordinal, 0, DrawStream::kParameters};
    ASSERT_TRUE(chain->OnlyMirrors(key));
    const Spaced source = NoiseSource(*chain);
    std::vector<std::byte> patch = source.Packed(), scratch;
    chain->RunInPlace(key, patch, scratch);
    EXPECT_EQ(patch, Ran(*chain, source.view, key)) << ordinal;
    const WindowMap map = chain->DrawWindow(key);
    seen.insert({map.reverse_y, map.reverse_x});
  }
  EXPECT_EQ(seen.size(), 4);
}

TEST(Chain, SaysWhereItDoesMoreThanMirror) {
  const auto only_mirrors = [](const Json& op, DType dtype) {
    ChainOptions options;
    options.augment.push_back(op);
    options.patch = Flat(6, 6);
    options.dtype = dtype;
    options.layout = PatchLayout::kNhwc;
    const auto chain = Chain::Compile(options);
    EXPECT_TRUE(chain.ok()) << chain.status();
    int count = 0;
    for (std::uint64_t ordinal = 0; ordinal < 64; ++ordinal) {
      count += chain->OnlyMirrors({1, 0, ordinal, 0, DrawStream::kParameters}) ? 1 : 0;
    }
    return count;
  };
  const Json flip = {{"flip", Json::object()}};
  EXPECT_EQ(only_mirrors(flip, DType::kUint8), 64);
  EXPECT_EQ(only_mirrors(flip, DType::kFloat32), 0);
  EXPECT_EQ(only_mirrors(Normalization(3), DType::kUint8), 0);
  EXPECT_EQ(only_mirrors({{"crop", {{"margin", {1, 1}}}}}, DType::kUint8), 0);
  EXPECT_THAT(only_mirrors({{"rotate90", Json::object()}}, DType::kUint8),
              testing::AllOf(testing::Gt(16), testing::Lt(48)));  // half of them are transposed
}

TEST(Chain, ACentredCropChangesNothing) {
  ChainOptions options;
  options.patch.y = options.patch.x = 20;
  options.dtype = DType::kUint8;
  options.layout = PatchLayout::kNhwc;
  const auto plain = Chain::Compile(options);
  options.augment = Json::array({Json{{"crop", {{"margin", {4, 4}}, {"position", "center"}}}}});
  const auto cropped = Chain::Compile(options);
  const Spaced large = NoiseSource(*cropped);
  ConstTensorView inner = large.view;
  inner.data = large.At(4, 4, 0);
  inner.shape[0] = inner.shape[1] = 20;
  EXPECT_EQ(Ran(*cropped, large.view, {}), Ran(*plain, inner, {}));
}

TEST(Chain, TheDrawsOfAnOpDoNotDependOnWhatStandsAfterIt) {
  ChainOptions options;
  options.patch.y = options.patch.x = 8;
  options.augment = Json::array({Json{{"flip", Json::object()}}});
  const auto one = Chain::Compile(options);
  options.augment.push_back(Normalization(3));
  const auto two = Chain::Compile(options);
  std::set<std::pair<bool, bool>> seen;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const WindowMap a = one->DrawWindow({1, 0, i, 0, DrawStream::kParameters});
    const WindowMap b = two->DrawWindow({1, 0, i, 9, DrawStream::kNoise});
    EXPECT_EQ(a.reverse_x, b.reverse_x);
    EXPECT_EQ(a.reverse_y, b.reverse_y);
    seen.insert({a.reverse_x, a.reverse_y});
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST(Chain, EachPathIsTakenWhereItIsMeantToBe) {
  ChainOptions options;
  options.patch.y = options.patch.x = 64;
  options.preprocess = Json::array({Normalization(3)});
  options.dtype = DType::kFloat16;
  const auto path = [&] { return std::string(Chain::Compile(options)->cpu_path()); };
  EXPECT_EQ(path(), HasAvx512Shuffle() ? "avx512vbmi" : "affine");
  options.cpu_level = CpuLevel::kAvx2;
  EXPECT_EQ(path(), "affine");
  options.dtype = DType::kBfloat16;
  EXPECT_EQ(path(), "affine");
  options.dtype = DType::kFloat32;
  EXPECT_EQ(path(), "affine_pair");
  options.cpu_level = CpuLevel::kTable;
  EXPECT_EQ(path(), "table");
  options.preprocess = Json::array();
  options.dtype = DType::kUint8;
  options.cpu_level = CpuLevel::kAvx2;
  EXPECT_EQ(path(), "split");
  options.layout = PatchLayout::kNhwc;
  EXPECT_EQ(path(), "copy");
}

/// The fast path must be chosen for common configs.
TEST(Chain, AffineArithmeticMatchesTheTableForManyConstants) {
  std::uint64_t state = 4;
  int found = 0, pairs = 0;
  constexpr int kTries = 300;
  for (int i = 0; i < kTries; ++i) {
    const auto unit = [&] {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<double>(state >> 40) / 16777216.0;
    };
    const NormalizeChannel k{255.0, unit(), 0.05 + 0.4 * unit()};
    std::vector<double> exact;
    for (int v = 0; v < 256; ++v) {
      exact.push_back(NormalizeValue(static_cast<double>(v), k.scale, k.mean, k.std));
    }
    found += FindAffine(exact, CastTo::kFloat16).has_value();
    pairs += FindAffinePair(exact, CastTo::kFloat32).has_value();
  }
  EXPECT_GT(found, kTries * 95 / 100);
  EXPECT_GT(pairs, kTries * 98 / 100);
}

TEST(Chain, CastRoundsBeforeThePatchsOwnType) {
  ChainOptions options;
  options.patch.y = options.patch.x = 16;
  options.channels = 1;
  options.layout = PatchLayout::kNhwc;
  options.preprocess = Json::array({Json{{"normalize", {{"mean", {0.5}}, {"std", {0.3}}}}},
                                    Json{{"cast", {{"dtype", "bfloat16"}}}}});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (std::size_t v = 0; v < 256; ++v) {
    const auto exact = static_cast<float>((static_cast<double>(v) / 255.0 - 0.5) / 0.3);
    EXPECT_EQ(chain->table()[v], std::uint32_t{Bfloat16Bits(exact)} << 16);
  }
}

TEST(Chain, RefusesWhatItCannotCompile) {
  const auto error = [](const Json& augment, auto&&... change) {
    ChainOptions options;
    options.patch.y = 64;
    options.patch.x = 64;
    options.augment = augment;
    (change(options), ...);
    return Chain::Compile(options).status();
  };
  const auto text = [&](const Json& augment, auto&&... change) {
    return std::string(MessageOf(error(augment, change...)));
  };
  const Json none = Json::array();
  EXPECT_TRUE(error(none).ok());
  EXPECT_EQ(text(Json::array({Json{{"flap", Json::object()}}})),
            "check ops: key 'augment[0].flap': unknown op");
  EXPECT_EQ(text(Json::array({Json{{"flip", {{"p", 1}}}}})),
            "check ops: augment[0].flip: unknown key 'p' (known: horizontal, vertical, axes)");
  EXPECT_EQ(text(Json::array({Json{{"flip", {{"vertical", 2}}}}})),
            "check ops: augment[0].flip: key 'vertical': 2 is out of range (0..1)");
  EXPECT_EQ(
      text(Json::array({Json{{"flip", Json::object()}}, Json{{"normalize", {{"std", {0}}}}}})),
      "check ops: augment[1].normalize: std must be above 0 in every channel");
  EXPECT_EQ(text(Json::array({Json{{"normalize", {{"mean", {0, 0}}}}}})),
            "check ops: key 'augment[0].normalize': 2 means and 1 stds for 3 channels: expected 1 "
            "or 3 of each");
  EXPECT_EQ(text(Json::array({Json{{"rotate90", Json::object()}}}),
                 [](ChainOptions& o) { o.patch.x = 32; }),
            "check ops: key 'augment[0].rotate90': needs a square patch, got 64 x 32");
  EXPECT_EQ(text(Json::array({Json{{"crop", {{"margin", {-1, 0}}}}}})),
            "check ops: augment[0].crop: key 'margin': -1 is out of range (0..4096 px)");
  EXPECT_FALSE(error(Json::array({3})).ok());
  EXPECT_FALSE(error(Json(3)).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.channels = 0; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.channels = 65; }).ok());
  EXPECT_TRUE(error(none, [](ChainOptions& o) { o.channels = 64; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.patch.y = 0; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.patch.y = 1 << 20; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.dtype = DType::kInt16; }).ok());
  EXPECT_EQ(error(none, [](ChainOptions& o) { o.source_dtype = DType::kInt32; }).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(error(none, [](ChainOptions& o) {
                 for (std::size_t i = 0; i <= plan::kMaxOps; ++i) {
                   o.augment.push_back(Json{{"flip", Json::object()}});
                 }
               }).ok());
}

TEST(Chain, RefusesMemoryThatDoesNotFit) {
  ChainOptions options;
  options.patch.y = options.patch.x = 16;
  const auto chain = Chain::Compile(options);
  const Spaced source = NoiseSource(*chain);
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  EXPECT_TRUE(chain->Run(source.view, {}, out, scratch).ok());
  const auto refused = [&](const ConstTensorView& view, std::size_t bytes) {
    return chain->Run(view, {}, std::span(out).first(bytes), scratch).code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(source.view, out.size() - 1));
  ConstTensorView view = source.view;
  view.shape[0] = 15;
  EXPECT_TRUE(refused(view, out.size()));
  view = source.view;
  view.dtype = DType::kInt8;
  EXPECT_TRUE(refused(view, out.size()));
  view = source.view;
  view.data = nullptr;
  EXPECT_TRUE(refused(view, out.size()));
}

TEST(Chain, ReadsNothingBesideItsSource) {
  // Sources that end with their allocation: a tool that watches memory sees any byte read beyond.
  for (const CpuLevel level : kCpuLevels) {
    for (const std::int64_t side : {1, 4, 5, 7, 8, 9, 16, 63, 64, 65}) {
      ChainOptions options;
      options.patch.y = options.patch.x = side;
      options.dtype = DType::kFloat16;
      options.cpu_level = level;
      options.augment =
          Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}}});
      const auto chain = Chain::Compile(options);
      const Spaced source = NoiseSource(*chain);
      for (std::uint64_t i = 0; i < 32; ++i) {
        const DrawKey key{2, 0, i, 0, DrawStream::kParameters};
        EXPECT_EQ(Ran(*chain, source.view, key), Staged(*chain, source, key));
      }
    }
  }
}

TEST(Chain, ItsBytesNeverChange) {
  // Recorded digests stay valid: the same run gives the same bytes in every build.
  ChainOptions options;
  options.patch.y = options.patch.x = 96;
  options.dtype = DType::kFloat16;
  options.preprocess = Json::array({Normalization(3)});
  options.augment =
      Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}}});
  const auto chain = Chain::Compile(options);
  const Spaced source = NoiseSource(*chain);
  Sha256 hash;
  for (std::uint64_t i = 0; i < 16; ++i) {
    hash.Update(Ran(*chain, source.view, {7678, 1, i, 0, DrawStream::kParameters}));
  }
  EXPECT_EQ(hash.Finish().Hex(),
            "72e8d19a7b5f0f08e8aba0ac5b0ca64f25f202dce3b7426190991bb6c3077926");
}

TEST(ChainOnGpu, HasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(stream.ok());
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    for (const DType dtype : kPatchTypes) {
      ChainOptions options;
      options.channels = seed % 4 == 3 ? 4 : 3;
      options.patch.y = options.patch.x = seed % 3 == 0 ? 128 : 61 + static_cast<int>(seed);
      options.dtype = dtype;
      options.layout = seed % 2 != 0 ? PatchLayout::kNhwc : PatchLayout::kNchw;
      options.augment = Geometry(seed * 0x9E3779B97F4A7C15u >> 20);
      options.preprocess.push_back(Normalization(options.channels));
      const auto chain = Chain::Compile(options);
      ASSERT_TRUE(chain.ok()) << chain.status();
      const auto device = DeviceChain::Create(*chain, stream->get());
      ASSERT_TRUE(device.ok()) << device.status();
      const Spaced source = NoiseSource(*chain);
      auto d_source = memory::DeviceBlock::Allocate(source.memory.size());
      constexpr std::size_t kPatches = kLaunchSlices + 2;  // more than one launch
      auto d_out = memory::DeviceBlock::Allocate(kPatches * chain->patch_bytes());
      ASSERT_TRUE(d_source.ok() && d_out.ok());
      ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source.memory, stream->get()).ok());
      std::vector<DevicePatch> patches;
      std::vector<std::byte> expected;
      for (std::size_t i = 0; i < kPatches; ++i) {
        const DrawKey key{seed, 1, i, 0, DrawStream::kParameters};
        patches.push_back({d_source->d_data(), d_out->d_data() + i * chain->patch_bytes(), key});
        const auto made = Ran(*chain, source.view, key);
        expected.insert(expected.end(), made.begin(), made.end());
      }
      DeviceArena room;
      ASSERT_TRUE(device->Begin(room, patches.size()).ok());
      ASSERT_TRUE(device->Launch(patches, room, stream->get()).ok());
      std::vector<std::byte> made(expected.size());
      ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
      ASSERT_TRUE(stream->WaitSync().ok());
      ASSERT_EQ(made, expected) << "seed " << seed << " " << NameOf(dtype);
    }
  }
}

}  // namespace
}  // namespace patchbay::ops
