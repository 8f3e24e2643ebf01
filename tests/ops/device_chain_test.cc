// Chains on a GPU: the bits of the CPU whatever the ops, types, channels and depth, for more
// patches than a launch takes, with scratch or without; labels likewise; what cannot be is refused.
#include "ops/chain/device_chain.h"

#include <cstring>

#include <gtest/gtest.h>

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

/// One launch of `patches` patches against the CPU's, with marks around each of them.
void ExpectBitsOfTheCpu(const ChainOptions& options, std::uint64_t seed, std::size_t patches) {
  constexpr std::size_t kGap = 64;
  SCOPED_TRACE(StrCat("seed ", seed, " ", DumpJson(options.augment), " ",
                      NameOf(options.source_dtype), " to ", NameOf(options.dtype), " ",
                      options.patch.ToString(), " x ", options.channels));
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  auto stream = memory::OwnedGpuStream::Create();
  const auto device = DeviceChain::Create(*chain, stream->get());
  ASSERT_TRUE(device.ok()) << device.status();
  const plan::MacenkoFit fit = OtherFit();
  const plan::ReinhardFit reinhard = OtherReinhard();
  ImageColours colours = &fit;
  colours.reinhard = &reinhard;
  const auto source = SourceBytes(*chain);
  const std::size_t stride = (chain->patch_bytes() + kGap + 63) / 64 * 64;
  std::vector<std::byte> expected(patches * stride, std::byte{0xC3}), made = expected;
  auto d_source = memory::DeviceBlock::Allocate(source.size());
  auto d_out = memory::DeviceBlock::Allocate(made.size());
  ASSERT_TRUE(d_source.ok() && d_out.ok());
  ASSERT_TRUE(memory::CopyToDevice(d_source->d_data(), source, stream->get()).ok());
  ASSERT_TRUE(memory::CopyToDevice(d_out->d_data(), made, stream->get()).ok());
  std::vector<DevicePatch> batch;
  for (std::size_t i = 0; i < patches; ++i) {
    const auto on_cpu = OnCpu(*chain, source, KeyOf(seed, i), colours);
    std::copy(on_cpu.begin(), on_cpu.end(),
              expected.begin() + static_cast<std::ptrdiff_t>(i * stride));
    batch.push_back({d_source->d_data(), d_out->d_data() + i * stride, KeyOf(seed, i), colours});
  }
  DeviceRoom room;
  ASSERT_TRUE(device->Begin(room, patches).ok());
  const Status launched = device->Launch(batch, room, stream->get());
  ASSERT_TRUE(launched.ok()) << launched;
  ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
  ASSERT_TRUE(stream->WaitSync().ok());
  ASSERT_EQ(made, expected);
}

TEST(DeviceChainOnGpu, EachOpHasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  constexpr DType kSources[] = {DType::kUint8, DType::kUint16, DType::kFloat32};
  std::uint64_t cases = 0;
  for (const Json& step : FloatSteps()) {
    for (const DType source : kSources) {
      ChainOptions options;
      options.source_dtype = source;
      options.dtype = kPatchTypes[cases % 4];
      options.patch = Flat(7 + static_cast<std::int64_t>(cases) % 4 * 9,
                           5 + static_cast<std::int64_t>(cases) % 7 * 27);
      options.layout = cases % 2 != 0 ? OutputLayout::kNhwc : OutputLayout::kNchw;
      options.augment = Json::array({step});
      ExpectBitsOfTheCpu(options, cases, 3);
      ++cases;
    }
  }
}

TEST(DeviceChainOnGpu, ReinhardHasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    ChainOptions options;
    options.patch = Flat(17, 140);
    options.dtype = kPatchTypes[seed];
    options.source_dtype = seed % 2 == 0 ? DType::kUint8 : DType::kUint16;
    options.preprocess = Json::array({ReinhardStep()});
    if (seed > 1) options.augment = Json::array({FloatSteps()[0], FloatSteps()[4]});
    ExpectBitsOfTheCpu(options, seed, 2);
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
  for (const int channels : {1, 2, 16}) {
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

TEST(DeviceChainOnGpu, ChainsOfVolumesAreRefused) {
  PB_NEED_GPU();
  auto stream = memory::OwnedGpuStream::Create();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ChainOptions options;
  options.channels = 1;
  options.patch = {3, 11, 37};
  options.augment = Json::array({FloatSteps()[6]});
  const auto chain = Chain::Compile(options);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_TRUE(absl::IsUnimplemented(DeviceChain::Create(*chain, stream->get()).status()));
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
    DeviceRoom room;
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
  DeviceRoom room;
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
