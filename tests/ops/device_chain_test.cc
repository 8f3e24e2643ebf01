// Chains on a GPU: the same bits as on the CPU for all ops, types, channels and depths, for more
// patches than a launch takes, with and without scratch; labels likewise; impossible requests are
// refused.
#include "ops/chain/device_chain.h"

#include <cstring>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include "ops/icc_to_srgb/icc_lookup.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/float_steps.h"

namespace patchbay::ops {
namespace {

/// The source of any chain, with its depth.
std::vector<std::byte> SourceBytes(const Chain& chain) {
  const auto values = chain.source_extent().Pixels() * chain.options().channels;
  return NoiseBytes(static_cast<std::size_t>(values), chain.options().source_dtype, 11);
}

std::vector<std::byte> OnCpu(const Chain& chain, std::vector<std::byte> source, const DrawKey& key,
                             const ImageColours& colours) {
  const Extent size = chain.source_extent();
  const auto view = ContiguousView<4>(source.data(), chain.options().source_dtype,
                                      {size.z, size.y, size.x, chain.options().channels});
  std::vector<std::byte> out(chain.patch_bytes()), scratch;
  const Status status = chain.Run(view, key, out, scratch, colours);
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

DrawKey KeyOf(std::uint64_t seed, std::uint64_t ordinal) {
  return {seed, 1, ordinal, 0, DrawStream::kParameters};
}

/// A lookup of random nodes, some beyond what sRGB shows.
IccLookup RandomLookup(std::uint64_t seed) {
  std::vector<double> levels;
  for (std::uint32_t i = 0; levels.size() < 3 * kIccNodes; ++i) {
    const std::uint32_t word = Draw(KeyOf(seed, 0), i).word[0];
    for (const int shift : {0, 8, 16}) levels.push_back((word >> shift & 0xFF) * 1.6 - 70);
  }
  return *IccLookup::FromLevels(levels);
}

/// Two images with the fits that the colour ops need; every third patch is of the one without an
/// ICC profile.
struct TwoImages {
  plan::MacenkoFit fit = OtherFit();
  plan::ReinhardFit reinhard = OtherReinhard();
  IccLookup icc = RandomLookup(3);

  ImageColours Of(std::size_t patch) const {
    ImageColours colours = &fit;
    colours.reinhard = &reinhard;
    if (patch % 3 != 2) colours.icc = &icc;
    return colours;
  }
};

/// One launch of `patches` patches against the CPU's, with marks around each of them; of noise, or
/// of one byte.
void ExpectBitsOfTheCpu(const ChainOptions& options, std::uint64_t seed, std::size_t patches,
                        std::optional<std::byte> flat = std::nullopt) {
  constexpr std::size_t kGap = 64;
  SCOPED_TRACE(StrCat("seed ", seed, " ", DumpJson(options.preprocess), DumpJson(options.augment),
                      " ", NameOf(options.source_dtype), " to ", NameOf(options.dtype), " ",
                      options.patch.ToString(), " x ", options.channels));
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  auto stream = memory::OwnedGpuStream::Create();
  const auto device = DeviceChain::Create(*chain, stream->get());
  ASSERT_TRUE(device.ok()) << device.status();
  static const TwoImages images;
  auto source = SourceBytes(*chain);
  if (flat) std::fill(source.begin(), source.end(), *flat);
  const std::size_t stride = (chain->patch_bytes() + kGap + 63) / 64 * 64;
  std::vector<std::byte> expected(patches * stride, std::byte{0xC3}), made = expected;
  auto d_source = memory::DeviceBlock::Allocate(source.size());
  auto d_out = memory::DeviceBlock::Allocate(made.size());
  ASSERT_TRUE(d_source.ok() && d_out.ok());
  ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source, stream->get()).ok());
  ASSERT_TRUE(memory::CopyToDevice(d_out->d_data(), made, stream->get()).ok());
  std::vector<DevicePatch> batch;
  for (std::size_t i = 0; i < patches; ++i) {
    const ImageColours colours = images.Of(i);
    const auto on_cpu = OnCpu(*chain, source, KeyOf(seed, i), colours);
    std::copy(on_cpu.begin(), on_cpu.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(i * stride));
    batch.push_back({d_source->d_data(), d_out->d_data() + i * stride, KeyOf(seed, i), colours});
  }
  DeviceArena room;
  ASSERT_TRUE(device->Begin(room, patches).ok());
  const Status launched = device->Launch(batch, room, stream->get());
  ASSERT_TRUE(launched.ok()) << launched;
  ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
  ASSERT_TRUE(stream->WaitSync().ok());
  ASSERT_EQ(made, expected);
}

/// At least 200 draws of a chain of one, with every type of output and the smallest patches.
void ExpectBitsOfTheCpuOfOp(const Json& step, std::span<const DType> sources) {
  constexpr std::int64_t kHeights[] = {1, 7, 16, 2, 34}, kWidths[] = {19, 1, 64, 5, 130, 17, 3};
  constexpr std::size_t kDraws = 204;
  // Smaller patches would fold under elastic; axes of one pixel are not deformed.
  const auto side = [&step](std::int64_t pixels) {
    return step.contains("elastic") && pixels > 1 ? std::max<std::int64_t>(pixels, 5) : pixels;
  };
  std::uint64_t cases = 0;
  for (const DType source : sources) {
    for (const DType dtype : kPatchTypes) {
      for (const PatchLayout layout : {PatchLayout::kNchw, PatchLayout::kNhwc}) {
        ChainOptions options;
        options.source_dtype = source;
        options.dtype = dtype;
        options.patch = Flat(side(kHeights[cases % 5]), side(kWidths[cases % 7]));
        options.layout = layout;
        options.augment = Json::array({step});
        ExpectBitsOfTheCpu(options, cases,
                           (kDraws + 8 * sources.size() - 1) / (8 * sources.size()));
        ++cases;
      }
    }
  }
}

TEST(DeviceChainOnGpu, EachOpHasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  constexpr DType kSources[] = {DType::kUint8, DType::kUint16, DType::kFloat32};
  for (const Json& step : FloatSteps()) ExpectBitsOfTheCpuOfOp(step, kSources);
  ExpectBitsOfTheCpuOfOp(ReinhardStep(), kSources);
  ExpectBitsOfTheCpuOfOp(IccStep(), {kSources, 1});
}

TEST(DeviceChainOnGpu, BlackWhiteAndGreyHaveTheBitsOfTheCpu) {
  PB_NEED_GPU();
  std::vector<Json> steps = FloatSteps();
  steps.push_back(ReinhardStep());
  steps.push_back(IccStep());
  steps.push_back(Json::parse(R"({"hed_jitter": {"p": 1, "alpha": 0, "beta": 0}})"));
  steps.push_back(Json::parse(R"({"color_jitter": {"p": 1, "brightness": [0, 0]}})"));
  for (const Json& step : steps) {
    for (const int grey : {0, 1, 128, 239, 241, 255}) {
      ChainOptions options;
      options.patch = Flat(6, 21);
      options.dtype = kPatchTypes[static_cast<std::size_t>(grey) % 4];
      options.augment = Json::array({step});
      ExpectBitsOfTheCpu(options, 2, 2, static_cast<std::byte>(grey));
    }
  }
}

TEST(DeviceChainOnGpu, ColoursOfTheProfileComeBeforeAnyOther) {
  PB_NEED_GPU();
  const auto steps = FloatSteps();
  for (const Json& colour : {steps[2], ReinhardStep()}) {
    ChainOptions options;
    options.patch = Flat(17, 140);
    options.preprocess = Json::array({colour, IccStep()});
    options.augment = Json::array({steps[0], steps[4], steps[5], steps[6]});
    ExpectBitsOfTheCpu(options, 1, 5);
  }
}

TEST(DeviceChainOnGpu, ARoomTakesAnyNumberOfLookups) {
  PB_NEED_GPU();
  ChainOptions options;
  options.patch = Flat(2, 3);
  options.dtype = DType::kFloat32;
  options.preprocess = Json::array({IccStep()});
  const auto chain = Chain::Compile(options);
  auto stream = memory::OwnedGpuStream::Create();
  const auto device = DeviceChain::Create(*chain, stream->get());
  const auto source = SourceBytes(*chain);
  const std::size_t bytes = chain->patch_bytes();
  auto d_source = memory::DeviceBlock::Allocate(source.size());
  auto d_out = memory::DeviceBlock::Allocate((kKeptBlocks + 2) * bytes);
  ASSERT_TRUE(chain.ok() && device.ok() && d_source.ok() && d_out.ok());
  ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source, stream->get()).ok());
  // More than it keeps, then one that it gave up, one that it kept and one it never had.
  std::vector<IccLookup> lookups;
  for (std::size_t i = 0; i < kKeptBlocks + 3; ++i) lookups.push_back(RandomLookup(i));
  std::vector<std::size_t> first(kKeptBlocks + 2);
  std::iota(first.begin(), first.end(), std::size_t{0});
  DeviceArena room;
  for (const auto& used : {first, {0, kKeptBlocks + 1, kKeptBlocks + 2}}) {
    ASSERT_TRUE(device->Begin(room, used.size()).ok());
    std::vector<DevicePatch> batch;
    std::vector<std::byte> expected;
    for (std::size_t i = 0; i < used.size(); ++i) {
      ImageColours colours;
      colours.icc = &lookups[used[i]];
      batch.push_back({d_source->d_data(), d_out->d_data() + i * bytes, KeyOf(1, i), colours});
      const auto on_cpu = OnCpu(*chain, source, KeyOf(1, i), colours);
      expected.insert(expected.end(), on_cpu.begin(), on_cpu.end());
    }
    ASSERT_TRUE(device->Launch(batch, room, stream->get()).ok());
    std::vector<std::byte> made(expected.size());
    ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
    ASSERT_TRUE(stream->WaitSync().ok());
    EXPECT_EQ(made, expected);
  }
}

TEST(DeviceChainOnGpu, RandomChainsHaveTheBitsOfTheCpu) {
  PB_NEED_GPU();
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const auto steps = FloatSteps();
    const PhiloxBlock random = Draw({seed, 0, 1, 0, DrawStream::kParameters}, 0);
    ChainOptions options;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if ((random.word[0] >> i & 1u) != 0) options.augment.push_back(steps[i]);
    }
    options.patch = Flat(8 + random.word[1] % 30, 8 + random.word[2] % 150);
    options.dtype = kPatchTypes[seed % 4];
    ExpectBitsOfTheCpu(options, seed, 2);
  }
}

TEST(DeviceChainOnGpu, OtherChannelsTypesAndDepthsToo) {
  PB_NEED_GPU();
  const auto steps = FloatSteps();
  for (const int channels : {1, 2, 17, 64}) {
    for (const DType source : {DType::kUint8, DType::kInt16, DType::kFloat32}) {
      for (const bool deep : {false, true}) {
        ChainOptions options;
        options.channels = channels;
        options.source_dtype = source;
        options.patch = {deep ? 3 : 1, 11, 37};
        options.dtype = deep ? DType::kFloat32 : DType::kFloat16;
        options.augment = Json::array({steps[6], steps[7], steps[10], steps[11]});
        options.augment.push_back(steps[1]);
        if (!deep) ExpectBitsOfTheCpu(options, 3, 2);
        options.augment = Json::array({steps[8], steps[9], steps[10], steps[11]});  // no float
        ExpectBitsOfTheCpu(options, 4, 2);
      }
    }
  }
}

TEST(DeviceChainOnGpu, MorePatchesThanOneLaunchTakes) {
  PB_NEED_GPU();
  ChainOptions options;
  options.patch = Flat(8, 9);
  options.dtype = DType::kUint8;
  options.augment = Json::parse(R"([{"affine": {"p": 0.5, "degrees": [-20, 20]}},
      {"color_jitter": {"p": 0.5, "contrast": [0.7, 1.3]}},
      {"gaussian_blur": {"p": 0.5, "sigma": [0.4, 2]}}])");
  ExpectBitsOfTheCpu(options, 5, 2 * kLaunchSlices + 3);
}

TEST(DeviceChainOnGpu, ALaunchEndsWhereItsScratchDoes) {
  PB_NEED_GPU();
  ChainOptions options;
  options.patch = Flat(1200, 900);  // two images of three channels: 26 MB a patch, two fit
  options.dtype = DType::kUint8;
  options.augment = Json::parse(R"([{"gaussian_blur": {"p": 1, "sigma": [0.1, 0.3]}}])");
  ExpectBitsOfTheCpu(options, 5, 3);
}

TEST(DeviceChainOnGpu, LabelsGoWhereThePixelsGo) {
  PB_NEED_GPU();
  for (const bool between : {false, true}) {
    ChainOptions options;
    options.patch = Flat(40, 40);
    options.augment = Json::parse(R"([{"crop": {"margin": [8, 5]}}, {"flip": {}},
        {"rotate90": {}}])");
    if (between) {
      options.augment.push_back(FloatSteps()[0]);
      options.augment.push_back(FloatSteps()[1]);
    }
    const auto chain = Chain::Compile(options);
    ASSERT_TRUE(chain.ok()) << chain.status();
    const Extent size = chain->source_extent();
    auto labels = NoiseBytes(static_cast<std::size_t>(size.Pixels()), DType::kUint8, 4);
    auto stream = memory::OwnedGpuStream::Create();
    const auto device = DeviceChain::Create(*chain, stream->get());
    auto d_labels = memory::DeviceBlock::Allocate(labels.size());
    auto d_out = memory::DeviceBlock::Allocate(5 * 1600);
    ASSERT_TRUE(device.ok() && d_labels.ok() && d_out.ok());
    ASSERT_TRUE(memory::CopyToDevice(d_labels->d_data(), labels, stream->get()).ok());
    std::vector<DeviceLabels> batch;
    std::vector<std::uint8_t> expected;
    for (std::size_t i = 0; i < 5; ++i) {
      batch.push_back({d_labels->d_data(), d_out->d_data() + i * 1600, KeyOf(7, i)});
      std::vector<std::uint8_t> one(1600);
      std::vector<std::byte> scratch;
      const auto view = ContiguousView<3>(labels.data(), DType::kUint8, {size.y, size.x, 1});
      ASSERT_TRUE(chain->RunLabels(view, KeyOf(7, i), one, scratch).ok());
      expected.insert(expected.end(), one.begin(), one.end());
    }
    DeviceArena room;
    ASSERT_TRUE(device->Begin(room, batch.size()).ok());
    ASSERT_TRUE(device->LaunchLabels(batch, room, stream->get()).ok());
    std::vector<std::uint8_t> made(expected.size());
    ASSERT_TRUE(
        memory::CopyToHost(std::as_writable_bytes(std::span(made)), d_out->d_data(), stream->get())
            .ok());
    ASSERT_TRUE(stream->WaitSync().ok());
    EXPECT_EQ(made, expected) << between;
  }
}

TEST(DeviceChainOnGpu, RefusesWhatItCannotMake) {
  PB_NEED_GPU();
  auto stream = memory::OwnedGpuStream::Create();
  ChainOptions options;
  options.patch = Flat(8, 8);
  options.preprocess = Json::parse(R"([{"stain_normalize": {}}])");
  const auto chain = Chain::Compile(options);
  const auto device = DeviceChain::Create(*chain, stream->get());
  auto d_memory = memory::DeviceBlock::Allocate(4096);
  ASSERT_TRUE(device.ok() && d_memory.ok());
  DeviceArena room;
  ASSERT_TRUE(device->Begin(room, 1).ok());
  const plan::MacenkoFit fit = OtherFit();
  const auto refusal = [&](const DevicePatch& patch) {
    return std::string(device->Launch({&patch, 1}, room, stream->get()).message());
  };
  std::byte* const d_at = d_memory->d_data();
  EXPECT_NE(refusal({d_at, d_at + 1024, {}, nullptr}).find("no stain fit"), std::string::npos);
  EXPECT_NE(refusal({nullptr, d_at, {}, &fit}).find("no memory"), std::string::npos);
  EXPECT_NE(refusal({d_at, d_at + 1, {}, &fit}).find("misaligned"), std::string::npos);
  EXPECT_EQ(refusal({d_at, d_at + 1024, {}, &fit}), "");
  const std::vector<DevicePatch> many(9, {d_at, d_at + 1024, {}, &fit});
  EXPECT_EQ(device->Launch(many, room, stream->get()).code(), absl::StatusCode::kInternal)
      << "the room was made ready for one";
  ASSERT_TRUE(stream->WaitSync().ok());
}

TEST(DeviceChain, WithoutAGpuIsAnError) {
  if (!memory::ListGpus().empty()) GTEST_SKIP() << "this machine has a GPU";
  ChainOptions options;
  options.patch.y = options.patch.x = 16;
  EXPECT_FALSE(DeviceChain::Create(*Chain::Compile(options), nullptr).ok());
}

}  // namespace
}  // namespace patchbay::ops
