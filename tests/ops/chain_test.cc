// The chain: equal to its ops one after another, on every path; draws; refusals.
#include "ops/chain.h"

#include <cstring>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/cast.h"
#include "ops/normalize.h"
#include "runtime/base/hash.h"
#include "tests/contract/op_contract.h"

namespace patchbay::ops {
namespace {

constexpr DType kDTypes[] = {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32};
constexpr CpuLevel kLevels[] = {CpuLevel::kTable, CpuLevel::kAvx2, CpuLevel::kBest};

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

Spaced Source(const Chain& chain, std::int64_t row_gap = 0, std::int64_t pixel_gap = 0) {
  const std::array<std::int64_t, 3> shape = {chain.source_height(), chain.source_width(),
                                             chain.options().channels};
  Spaced source(DType::kUint8, shape, row_gap, pixel_gap);
  source.Fill(
      NoiseBytes(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]), DType::kUint8, 5));
  return source;
}

/// The ops applied one after another by their own functions, then cast, then laid out.
std::vector<std::byte> Staged(const Chain& chain, const Spaced& source, const DrawKey& key) {
  const ChainOptions& o = chain.options();
  Spaced image = source;
  image.view.data = image.memory.data();
  const auto step = [&](DType dtype, std::int64_t h, std::int64_t w, const auto& apply) {
    Spaced next(dtype, {h, w, o.channels}, 0, 0);
    const Status status = apply(image.view, next.view);
    EXPECT_TRUE(status.ok()) << status;
    image = std::move(next);
    image.view.data = image.memory.data();
  };
  DrawKey own = key;
  std::vector<Json> later;
  for (const Json* list : {&o.preprocess, &o.augment}) {
    for (const Json& op : *list) {
      const std::int64_t h = image.view.shape[0], w = image.view.shape[1];
      const std::string& name = op.begin().key();
      if (name == "flip") {
        step(DType::kUint8, h, w,
             [&](const auto& in, const auto& out) { return Flip(DrawFlip({}, own), in, out); });
      } else if (name == "rotate90") {
        const Rotate90Parameters p = DrawRotate90(own);
        step(DType::kUint8, p.turns % 2 != 0 ? w : h, p.turns % 2 != 0 ? h : w,
             [&](const auto& in, const auto& out) { return Rotate90(p, in, out); });
      } else if (name == "crop") {
        const CropOptions crop{op["crop"]["margin"][0], op["crop"]["margin"][1],
                               op["crop"].value("position", "random") == "random"};
        step(DType::kUint8, h - 2 * crop.margin_y, w - 2 * crop.margin_x,
             [&](const auto& in, const auto& out) { return Crop(DrawCrop(crop, own), in, out); });
      } else {
        later.push_back(op["normalize"]);
      }
      ++own.op_occurrence;
    }
  }
  const std::int64_t h = image.view.shape[0], w = image.view.shape[1];
  const Json plain = {{"scale", 1}, {"mean", {0}}, {"std", {1}}};
  if (later.empty()) later.push_back(plain);
  EXPECT_EQ(later.size(), 1u);
  step(DType::kFloat32, h, w, [&](const auto& in, const auto& out) {
    const NormalizeOptions normalize{later[0]["scale"], later[0]["mean"], later[0]["std"]};
    return Normalize(normalize, in, out);
  });
  step(o.dtype, h, w, [&](const auto& in, const auto& out) { return Cast(in, out); });
  if (o.layout == OutputLayout::kNhwc) return image.Packed();
  std::vector<std::byte> planes;
  const std::size_t element = SizeOf(o.dtype);
  for (std::int64_t c = 0; c < o.channels; ++c) {
    for (std::int64_t y = 0; y < h; ++y) {
      for (std::int64_t x = 0; x < w; ++x) {
        planes.insert(planes.end(), image.At(y, x, c), image.At(y, x, c) + element);
      }
    }
  }
  return planes;
}

TEST(Chain, EqualsItsOpsOneAfterAnotherOnEveryPath) {
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const DType dtype : kDTypes) {
      ChainOptions options;
      options.channels = seed % 4 == 3 ? static_cast<int>(1 + seed % 5) : 3;
      // Odd sides leave tails of every length; 64 and 128 are whole vectors.
      const std::int64_t side = seed % 3 == 0 ? 64 * (1 + static_cast<std::int64_t>(seed % 2))
                                              : 1 + static_cast<std::int64_t>(seed * 7 % 90);
      options.patch_height = options.patch_width = side;
      options.dtype = dtype;
      options.layout = seed % 2 != 0 ? OutputLayout::kNhwc : OutputLayout::kNchw;
      options.augment = Geometry(seed * 0x9E3779B97F4A7C15u >> 20);
      if (seed % 5 != 0) options.preprocess.push_back(Normalization(options.channels));
      const DrawKey key{seed, 3, seed * 1000 + 1, 0, DrawStream::kParameters};
      for (const CpuLevel level : kLevels) {
        options.cpu_level = level;
        const auto chain = Chain::Compile(options);
        ASSERT_TRUE(chain.ok()) << chain.status();
        SCOPED_TRACE(StrCat("seed ", seed, " ", NameOf(dtype), " side ", side, " channels ",
                            options.channels, " path ", chain->cpu_path(), " ",
                            DumpJson(options.augment)));
        const Spaced source = Source(*chain, seed % 7 == 0 ? 11 : 0, seed % 11 == 0 ? 1 : 0);
        ASSERT_EQ(Ran(*chain, source.view, key), Staged(*chain, source, key));
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 60 * 4 * 3);
}

TEST(Chain, PatchesThatAreNotSquareAreFlippedAndCropped) {
  ChainOptions options;
  options.patch_height = 37;
  options.patch_width = 90;
  options.dtype = DType::kFloat16;
  options.augment =
      Json::array({Json{{"crop", {{"margin", {5, 9}}}}}, Json{{"flip", Json::object()}}});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain->SourceBox(Box2D(100, 200, 37, 90)), Box2D(95, 191, 47, 108));
  const Spaced source = Source(*chain);
  for (std::uint64_t ordinal = 0; ordinal < 40; ++ordinal) {
    const DrawKey key{1, 0, ordinal, 0, DrawStream::kParameters};
    ASSERT_EQ(Ran(*chain, source.view, key), Staged(*chain, source, key));
  }
}

TEST(Chain, ACentredCropChangesNothing) {
  ChainOptions options;
  options.patch_height = options.patch_width = 20;
  options.dtype = DType::kUint8;
  options.layout = OutputLayout::kNhwc;
  const auto plain = Chain::Compile(options);
  options.augment = Json::array({Json{{"crop", {{"margin", {4, 4}}, {"position", "center"}}}}});
  const auto cropped = Chain::Compile(options);
  const Spaced large = Source(*cropped);
  ConstTensorView inner = large.view;
  inner.data = large.At(4, 4, 0);
  inner.shape[0] = inner.shape[1] = 20;
  EXPECT_EQ(Ran(*cropped, large.view, {}), Ran(*plain, inner, {}));
}

TEST(Chain, TheDrawsOfAnOpDoNotDependOnWhatStandsAfterIt) {
  ChainOptions options;
  options.patch_height = options.patch_width = 8;
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
  options.patch_height = options.patch_width = 64;
  options.preprocess = Json::array({Normalization(3)});
  options.dtype = DType::kFloat16;
  const auto path = [&] { return std::string(Chain::Compile(options)->cpu_path()); };
  EXPECT_EQ(path(), HaveAvx512Shuffle() ? "avx512vbmi" : "affine");
  options.cpu_level = CpuLevel::kAvx2;
  EXPECT_EQ(path(), "affine");
  options.dtype = DType::kBfloat16;
  EXPECT_EQ(path(), "affine");
  options.dtype = DType::kFloat32;
  EXPECT_EQ(path(), "affine64");
  options.cpu_level = CpuLevel::kTable;
  EXPECT_EQ(path(), "table");
  options.preprocess = Json::array();
  options.dtype = DType::kUint8;
  options.cpu_level = CpuLevel::kAvx2;
  EXPECT_EQ(path(), "split");
  options.layout = OutputLayout::kNhwc;
  EXPECT_EQ(path(), "copy");
}

/// The fast path must be found for what people write, or it is not one.
TEST(Chain, AffineArithmeticMatchesTheTableForManyConstants) {
  std::uint64_t state = 4;
  int found = 0;
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
    found += FindAffine<float>(exact, CastTo::kFloat16).has_value();
  }
  EXPECT_GT(found, kTries * 95 / 100);
}

TEST(Chain, CastInTheMiddleRoundsThere) {
  ChainOptions options;
  options.patch_height = options.patch_width = 16;
  options.channels = 1;
  options.layout = OutputLayout::kNhwc;
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
    options.patch_height = 64;
    options.patch_width = 64;
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
            "compile ops: key 'augment[0].flap': unknown op");
  EXPECT_EQ(text(Json::array({Json{{"flip", {{"p", 1}}}}})),
            "compile ops: augment[0].flip: unknown key 'p' (known: horizontal, vertical)");
  EXPECT_EQ(text(Json::array({Json{{"flip", {{"vertical", 2}}}}})),
            "compile ops: augment[0].flip: key 'vertical': 2 is out of range (0..1)");
  EXPECT_EQ(
      text(Json::array({Json{{"flip", Json::object()}}, Json{{"normalize", {{"std", {0}}}}}})),
      "compile ops: augment[1].normalize: std must be above 0 in every channel");
  EXPECT_EQ(
      text(Json::array({Json{{"normalize", {{"mean", {0, 0}}}}}})),
      "compile ops: key 'augment[0].normalize': 2 means and 1 stds for 3 channels: expected 1 "
      "or 3 of each");
  EXPECT_EQ(
      text(Json::array({Json{{"rotate90", Json::object()}}}),
           [](ChainOptions& o) { o.patch_width = 32; }),
      "compile ops: key 'augment[0].rotate90': needs a square patch, got 64 x 32 at its place of "
      "the chain");
  EXPECT_EQ(text(Json::array({Json{{"crop", {{"margin", {-1, 0}}}}}})),
            "compile ops: augment[0].crop: key 'margin': -1 is out of range (0..4096 px)");
  EXPECT_FALSE(error(Json::array({3})).ok());
  EXPECT_FALSE(error(Json(3)).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.channels = 0; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.patch_height = 0; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.patch_height = 1 << 20; }).ok());
  EXPECT_FALSE(error(none, [](ChainOptions& o) { o.dtype = DType::kInt16; }).ok());
  EXPECT_EQ(error(none, [](ChainOptions& o) { o.source_dtype = DType::kUint16; }).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(error(none, [](ChainOptions& o) {
                 for (std::size_t i = 0; i <= kMaxOps; ++i) {
                   o.augment.push_back(Json{{"flip", Json::object()}});
                 }
               }).ok());
}

TEST(Chain, WhatIsWrongForEveryImageIsSaidBeforeOneIsOpen) {
  ChainOptions options;
  options.patch_height = 64;
  options.patch_width = 32;
  const auto text = [&] { return std::string(MessageOf(Chain::CheckConfig(options))); };
  options.preprocess = Json::array({Json{{"normalize", {{"mean", {0, 0}}, {"std", {1, 1}}}}}});
  EXPECT_EQ(text(), "") << "two channels are possible";
  options.augment = Json::array({Json{{"normalize", {{"std", {1, 1, 1}}}}}});
  EXPECT_THAT(text(),
              testing::HasSubstr("key 'preprocess[0].normalize': 2 means and 2 stds for 3"));
  options.augment =
      Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}}});
  EXPECT_THAT(text(), testing::HasSubstr("key 'augment[1].rotate90': needs a square patch"));
}

TEST(Chain, RefusesMemoryThatDoesNotFit) {
  ChainOptions options;
  options.patch_height = options.patch_width = 16;
  const auto chain = Chain::Compile(options);
  const Spaced source = Source(*chain);
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
  for (const CpuLevel level : kLevels) {
    for (const std::int64_t side : {1, 4, 5, 7, 8, 9, 16, 63, 64, 65}) {
      ChainOptions options;
      options.patch_height = options.patch_width = side;
      options.dtype = DType::kFloat16;
      options.cpu_level = level;
      options.augment =
          Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}}});
      const auto chain = Chain::Compile(options);
      const Spaced source = Source(*chain);
      for (std::uint64_t i = 0; i < 32; ++i) {
        const DrawKey key{2, 0, i, 0, DrawStream::kParameters};
        EXPECT_EQ(Ran(*chain, source.view, key), Staged(*chain, source, key));
      }
    }
  }
}

TEST(Chain, ItsBytesNeverChange) {
  // A promise to whoever recorded a digest: the same run gives the same bytes in every build.
  ChainOptions options;
  options.patch_height = options.patch_width = 96;
  options.dtype = DType::kFloat16;
  options.preprocess = Json::array({Normalization(3)});
  options.augment =
      Json::array({Json{{"flip", Json::object()}}, Json{{"rotate90", Json::object()}}});
  const auto chain = Chain::Compile(options);
  const Spaced source = Source(*chain);
  Sha256 hash;
  for (std::uint64_t i = 0; i < 16; ++i) {
    hash.Update(Ran(*chain, source.view, {7678, 1, i, 0, DrawStream::kParameters}));
  }
  EXPECT_EQ(hash.Finish().Hex(),
            "ba76cd55a85ee321e9ad325258ea927447069c978cdba593288bda39f86228fe");
}

TEST(ChainOnGpu, HasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(stream.ok());
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    for (const DType dtype : kDTypes) {
      ChainOptions options;
      options.channels = seed % 4 == 3 ? 4 : 3;
      options.patch_height = options.patch_width =
          seed % 3 == 0 ? 128 : 61 + static_cast<int>(seed);
      options.dtype = dtype;
      options.layout = seed % 2 != 0 ? OutputLayout::kNhwc : OutputLayout::kNchw;
      options.augment = Geometry(seed * 0x9E3779B97F4A7C15u >> 20);
      options.preprocess.push_back(Normalization(options.channels));
      const auto chain = Chain::Compile(options);
      ASSERT_TRUE(chain.ok()) << chain.status();
      const auto device = DeviceChain::Create(*chain, stream->get());
      ASSERT_TRUE(device.ok()) << device.status();
      const Spaced source = Source(*chain);
      auto d_source = memory::DeviceBlock::Allocate(source.memory.size());
      constexpr std::size_t kPatches = 40;  // more than one launch
      auto d_out = memory::DeviceBlock::Allocate(kPatches * chain->patch_bytes());
      ASSERT_TRUE(d_source.ok() && d_out.ok());
      ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source.memory, stream->get()).ok());
      std::vector<DevicePatch> patches;
      std::vector<std::byte> expected;
      for (std::size_t i = 0; i < kPatches; ++i) {
        const DrawKey key{seed, 1, i, 0, DrawStream::kParameters};
        patches.push_back({reinterpret_cast<const std::uint8_t*>(d_source->d_data()),
                           d_out->d_data() + i * chain->patch_bytes(), key});
        const auto made = Ran(*chain, source.view, key);
        expected.insert(expected.end(), made.begin(), made.end());
      }
      ASSERT_TRUE(device->Launch(patches, stream->get()).ok());
      std::vector<std::byte> made(expected.size());
      ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
      ASSERT_TRUE(stream->WaitSync().ok());
      ASSERT_EQ(made, expected) << "seed " << seed << " " << NameOf(dtype);
    }
  }
}

TEST(DeviceChain, WithoutAGpuIsAnError) {
  if (!memory::ListGpus().empty()) GTEST_SKIP() << "this machine has a GPU";
  ChainOptions options;
  options.patch_height = options.patch_width = 16;
  EXPECT_FALSE(DeviceChain::Create(*Chain::Compile(options), nullptr).ok());
}

}  // namespace
}  // namespace patchbay::ops
