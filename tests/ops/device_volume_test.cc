// Chains of volumes on a GPU: the bits of the CPU whatever the ops, types and sides, for patches
// whose sources differ in size and for more than a launch takes; labels likewise.
#include <cstdlib>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/chain/device_chain.h"
#include "tests/contract/op_contract.h"
#include "tests/ops/volume_steps.h"

namespace patchbay::ops {
namespace {

constexpr std::size_t kGap = 64;

/// Facts of three images: one of the patch's own spacing, and two that are read finer along two
/// axes, one of them separately along one of these.
plan::VolumeFacts FactsOf(const ChainOptions& options, std::size_t patch) {
  plan::VolumeFacts facts = VolumeStepFacts();
  if (options.kind == plan::PatchKind::kResampled && patch % 2 == 1) facts.step = {1, 2.2, 1.6};
  if (options.kind == plan::PatchKind::kResampled && patch % 4 == 3) facts.nearest_axis = 1;
  for (int c = 1; c < options.channels; ++c) facts.further.push_back({0.4 + 0.1 * c, 0.3 / c});
  return facts;
}

TensorView VoxelsView(std::vector<std::byte>& voxels, DType dtype, const Extent& size,
                      int channels) {
  return ContiguousView<4>(voxels.data(), dtype,
                           {size.z, size.y, size.x, static_cast<std::int64_t>(channels)});
}

std::size_t Aligned(std::size_t bytes) { return (bytes + kGap + 255) / 256 * 256; }

enum class VoxelKind { kNoise, kCancelling, kLabels };

/// Rows of floats so large that smaller sums vanish next to them until a row of the opposite sign
/// follows: the result depends on the order of rows and slices.
void LetRowsCancel(std::span<std::byte> voxels, std::int64_t width) {
  constexpr float kLarge = 1e18f;
  const auto values = std::span(reinterpret_cast<float*>(voxels.data()), voxels.size() / 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / width % 12;
    if (row == 1 || row == 9) values[i] = row == 1 ? kLarge : -kLarge;
  }
}

/// A batch, made on both devices from the same sources; between its parts are marks.
class Batch {
 public:
  Batch(const ChainOptions& options, std::size_t patches, std::uint64_t first, VoxelKind kind)
      : of_labels_(kind == VoxelKind::kLabels),
        dtype_(of_labels_ ? DType::kUint8 : options.source_dtype),
        channels_(of_labels_ ? 1 : options.channels),
        chain_(*Chain::Compile(options)) {
    bytes_ = of_labels_ ? static_cast<std::size_t>(options.patch.Pixels()) : chain_.patch_bytes();
    for (std::size_t i = 0; i < patches; ++i) {
      keys_.push_back(VolumeStepKey(first + i));
      facts_.push_back(FactsOf(options, i));
      const Extent size = chain_.SourceExtent(keys_[i], facts_[i]);
      places_.push_back(sources_.size());
      auto noise =
          NoiseBytes(static_cast<std::size_t>(size.Pixels() * channels_), dtype_, first + i);
      if (kind == VoxelKind::kCancelling) LetRowsCancel(noise, size.x);
      sources_.insert(sources_.end(), noise.begin(), noise.end());
      sources_.resize(Aligned(sources_.size()), std::byte{0x5A});
      MakeOnCpu(i, size, noise);
    }
  }

  void ExpectTheSameOnTheGpu(DeviceArena& room) const {
    auto stream = memory::OwnedGpuStream::Create();
    const auto device = DeviceChain::Create(chain_, stream->get());
    ASSERT_TRUE(device.ok()) << device.status();
    std::vector<std::byte> made(expected_.size(), std::byte{0xC3});
    auto d_sources = memory::DeviceBlock::Allocate(sources_.size());
    auto d_out = memory::DeviceBlock::Allocate(made.size());
    ASSERT_TRUE(d_sources.ok() && d_out.ok());
    ASSERT_TRUE(memory::CopyToDevice(d_sources->d_data(), sources_, stream->get()).ok());
    ASSERT_TRUE(memory::CopyToDevice(d_out->d_data(), made, stream->get()).ok());
    ASSERT_TRUE(device->Begin(room, keys_.size()).ok());
    const Status launched = Launch(*device, d_sources->d_data(), d_out->d_data(), room, *stream);
    ASSERT_TRUE(launched.ok()) << launched;
    ASSERT_TRUE(memory::CopyToHost(made, d_out->d_data(), stream->get()).ok());
    ASSERT_TRUE(stream->WaitSync().ok());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::size_t at = i * Aligned(bytes_);
      ASSERT_EQ(std::memcmp(made.data() + at, expected_.data() + at, Aligned(bytes_)), 0)
          << "patch " << i;
    }
  }

 private:
  void MakeOnCpu(std::size_t i, const Extent& size, std::vector<std::byte>& voxels) {
    const std::size_t at = expected_.size();
    expected_.resize(at + Aligned(bytes_), std::byte{0xC3});
    const auto out = std::span(expected_).subspan(at, bytes_);
    const auto view = VoxelsView(voxels, dtype_, size, channels_);
    std::vector<std::byte> scratch;
    const Status status =
        of_labels_ ? chain_.RunLabels(view, keys_[i],
                                      {reinterpret_cast<std::uint8_t*>(out.data()), out.size()},
                                      scratch, facts_[i])
                   : chain_.Run(view, keys_[i], out, scratch, nullptr, &facts_[i]);
    ASSERT_TRUE(status.ok()) << status;
  }

  Status Launch(const DeviceChain& device, const std::byte* d_sources, std::byte* d_out,
                DeviceArena& room, const memory::OwnedGpuStream& stream) const {
    std::vector<DevicePatch> patches;
    std::vector<DeviceLabels> labels;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::byte* d_source = d_sources + places_[i];
      std::byte* d_made = d_out + i * Aligned(bytes_);
      patches.push_back({d_source, d_made, keys_[i], {}, facts_[i]});
      labels.push_back({d_source, d_made, keys_[i], facts_[i]});
    }
    return of_labels_ ? device.LaunchLabels(labels, room, stream.get())
                      : device.Launch(patches, room, stream.get());
  }

  const bool of_labels_;
  const DType dtype_;
  const int channels_;
  const Chain chain_;
  std::size_t bytes_ = 0;  ///< bytes of a finished patch
  std::vector<DrawKey> keys_;
  std::vector<plan::VolumeFacts> facts_;
  std::vector<std::size_t> places_;  ///< offsets of the sources
  std::vector<std::byte> sources_, expected_;
};

/// In two launches of one room.
void ExpectVolumeBitsOfTheCpu(const ChainOptions& options, std::size_t patches, std::uint64_t first,
                              VoxelKind kind = VoxelKind::kNoise) {
  SCOPED_TRACE(StrCat("draws from ", first, " ", DumpJson(options.augment), " ",
                      NameOf(options.source_dtype), " to ", NameOf(options.dtype), " ",
                      options.patch.ToString()));
  DeviceArena room;
  Batch(options, patches, first, kind).ExpectTheSameOnTheGpu(room);
  Batch(options, 1, first + patches, kind).ExpectTheSameOnTheGpu(room);
}

bool Has(const std::string& step, const char* op) { return step.find(op) != std::string::npos; }

TEST(DeviceVolumeOnGpu, EachOpHasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  constexpr std::int64_t kSides[][3] = {{4, 3, 5}, {9, 7, 33}, {5, 6, 130}, {1, 9, 17}, {7, 1, 1}};
  std::uint64_t cases = 0;
  for (const auto& step : EachVolumeStep()) {
    for (const DType source : kVolumeSourceTypes) {
      for (const auto& side : kSides) {
        ++cases;
        // Control points lie closer than an amplitude reaches in slices of three rows.
        if (Has(step, "elastic") && (side[1] == 3)) continue;
        ChainOptions options = VolumeStepOptions(step, {side[0], side[1], side[2]}, source);
        if (!Has(step, "window")) {
          options.preprocess = *ParseJson(R"([{"window": {"range": [0, 255]}}])", "steps");
        }
        options.dtype = kPatchTypes[cases % 4];
        ExpectVolumeBitsOfTheCpu(options, 9, 100 * cases);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(DeviceVolumeOnGpu, WholeChainsHaveTheBitsOfTheCpu) {
  PB_NEED_GPU();
  std::string all;
  for (const auto& step : VolumeSteps()) all += (all.empty() ? "" : ",") + step;
  for (std::uint64_t round = 0; round < 8; ++round) {
    ChainOptions options = VolumeStepOptions(all, {6, 13, 37}, kVolumeSourceTypes[round % 4]);
    if (round >= 4) options.kind = plan::PatchKind::kResampled;
    options.dtype = kPatchTypes[round % 4];
    ExpectVolumeBitsOfTheCpu(options, 5, 1000 * round);
    if (HasFatalFailure()) return;
  }
}

TEST(DeviceVolumeOnGpu, AnyNumberOfChannelsHasTheBitsOfTheCpu) {
  PB_NEED_GPU();
  std::string all;
  for (const auto& step : VolumeSteps()) all += (all.empty() ? "" : ",") + step;
  for (std::uint64_t round = 0; round < 8; ++round) {
    ChainOptions options = VolumeStepOptions(all, {4, 9, 37}, kVolumeSourceTypes[round % 4]);
    options.channels = round == 7 ? 14 : round % 2 == 0 ? 3 : 5;
    options.layout = round % 3 == 0 ? PatchLayout::kNhwc : PatchLayout::kNchw;
    if (round >= 4) options.kind = plan::PatchKind::kResampled;
    options.dtype = kPatchTypes[round % 4];
    ExpectVolumeBitsOfTheCpu(options, 3, 1000 * round);
    if (HasFatalFailure()) return;
  }
}

TEST(DeviceVolumeOnGpu, NormalisersOfEachChannelHaveTheBitsOfTheCpu) {
  PB_NEED_GPU();
  for (const char* step : {R"({"zscore": {"over": "nonzero"}})", R"({"percentile": {}})"}) {
    ChainOptions options = VolumeStepOptions(step, {2, 9, 37}, DType::kInt16);
    options.channels = 14;
    options.dtype = DType::kFloat32;
    ExpectVolumeBitsOfTheCpu(options, 3, 1);
  }
}

TEST(DeviceVolumeOnGpu, PatchesThatDrawOpsAndSomeThatDoNotShareALaunch) {
  PB_NEED_GPU();
  ChainOptions options = VolumeStepOptions(
      R"({"affine": {"p": 0.5, "degrees": [-40, 40]}}, {"gaussian_blur": {"p": 0.4}},
         {"contrast": {"p": 0.4}}, {"low_resolution": {"p": 0.4}},
         {"gamma": {"p": 0.5, "retain_stats": true, "invert": true}}, {"gamma": {"p": 0.5}})",
      {5, 6, 21}, DType::kInt16);
  options.dtype = DType::kFloat32;
  options.kind = plan::PatchKind::kResampled;
  ExpectVolumeBitsOfTheCpu(options, kLaunchSlices + 3, 1);
}

TEST(DeviceVolumeOnGpu, RowsAndSlicesAreAddedInTheOrderOfTheCpu) {
  PB_NEED_GPU();
  ChainOptions options =
      VolumeStepOptions(R"({"contrast": {"p": 1}})", {4, 9, 35}, DType::kFloat32);
  options.dtype = DType::kFloat32;
  ExpectVolumeBitsOfTheCpu(options, 5, 1, VoxelKind::kCancelling);
}

TEST(DeviceVolumeOnGpu, PatchesThatTheScratchDoesNotHoldAtOnceGoOneByOne) {
  PB_NEED_GPU();
  // 13 MB for two of them, 45 MB for the one that is smoothed: more than the scratch holds at once.
  ChainOptions options =
      VolumeStepOptions(R"({"contrast": {"p": 1}})", {40, 200, 200}, DType::kUint8);
  options.kind = plan::PatchKind::kResampled;
  ExpectVolumeBitsOfTheCpu(options, 3, 1);
}

/// Scratch of a room: after its Begin, then after each of 8 launches of one patch whose source is
/// `first` to `last` times as fine along each axis. The GPU then has `left_bytes`, 0: all of it.
std::vector<std::uint64_t> ScratchWhileBoxesGrow(double first, double last,
                                                 std::uint64_t left_bytes = 0) {
  constexpr int kLaunches = 8;
  ChainOptions options = VolumeStepOptions(VolumeSteps()[0], {6, 11, 17}, DType::kInt16);
  options.kind = plan::PatchKind::kResampled;
  const auto chain = Chain::Compile(options);
  auto stream = memory::OwnedGpuStream::Create();
  const auto device = DeviceChain::Create(*chain, stream->get());
  auto d_out = memory::DeviceBlock::Allocate(chain->patch_bytes());
  DeviceArena room;
  EXPECT_TRUE(device->Begin(room, 4).ok());
  std::vector<std::uint64_t> bytes = {room.plane_bytes()};
  memory::DeviceBlock filler;
  if (left_bytes != 0) {
    filler = *memory::DeviceBlock::Allocate(memory::MemoryOf(0)->free_bytes - left_bytes);
  }
  for (int i = 0; i < kLaunches; ++i) {
    const double step = first + (last - first) * i / (kLaunches - 1);
    plan::VolumeFacts facts = VolumeStepFacts();
    facts.step = {step, step, step};
    const auto voxels =
        static_cast<std::size_t>(chain->SourceExtent(VolumeStepKey(1), facts).Pixels());
    const auto d_source = memory::DeviceBlock::Allocate(2 * voxels);
    const DevicePatch patch{d_source->d_data(), d_out->d_data(), VolumeStepKey(1), {}, facts};
    EXPECT_TRUE(device->Begin(room, 4).ok());
    EXPECT_TRUE(memory::FillDevice(d_source->d_data(), 0, 2 * voxels, stream->get()).ok());
    EXPECT_TRUE(device->Launch({&patch, 1}, room, stream->get()).ok());
    EXPECT_TRUE(stream->WaitSync().ok());
    bytes.push_back(room.plane_bytes());
  }
  return bytes;
}

TEST(DeviceVolumeOnGpu, ScratchOfSmoothedSourcesIsTakenOnceThoughTheyGrow) {
  PB_NEED_GPU();
  const auto known = ScratchWhileBoxesGrow(1.1, 1.6);
  EXPECT_THAT(known, testing::Each(known.front())) << "Begin takes enough";
  const auto finer = ScratchWhileBoxesGrow(4, 5);
  EXPECT_LT(finer[0], finer[1]) << "more than Begin can know";
  EXPECT_THAT(std::vector(finer.begin() + 1, finer.end()), testing::Each(finer[1]));
}

TEST(DeviceVolumeOnGpu, WhereThereIsNoRoomForLaterLaunchesScratchIsThatOfThisOne) {
  PB_NEED_GPU();
  if (std::getenv("PATCHBAY_EMULATED_GPUS") == nullptr) GTEST_SKIP() << "others use a real GPU";
  constexpr std::uint64_t kLeftBytes = 8'000'000;
  const auto bytes = ScratchWhileBoxesGrow(4, 5, kLeftBytes);
  EXPECT_LT(bytes[0], bytes[1]);
  EXPECT_THAT(bytes, testing::Each(testing::Lt(kLeftBytes)));
}

TEST(DeviceVolumeOnGpu, LabelsHaveTheBytesOfTheCpu) {
  PB_NEED_GPU();
  for (const std::string& moves : {std::string(R"({"flip": {"axes": ["z", "y", "x"]}})"),
                                   VolumeSteps()[3], VolumeSteps()[3] + "," + VolumeSteps()[4]}) {
    ChainOptions options = VolumeStepOptions(moves, {6, 11, 37}, DType::kInt16);
    options.kind = plan::PatchKind::kResampled;
    ExpectVolumeBitsOfTheCpu(options, kLaunchSlices + 3, 7, VoxelKind::kLabels);
    if (HasFatalFailure()) return;
  }
}

TEST(DeviceVolumeOnGpu, PatchesWithoutMemoryAreRefused) {
  PB_NEED_GPU();
  const auto chain = Chain::Compile(VolumeStepOptions(VolumeSteps()[3], {4, 5, 6}, DType::kInt16));
  auto stream = memory::OwnedGpuStream::Create();
  const auto device = DeviceChain::Create(*chain, stream->get());
  auto d_block = memory::DeviceBlock::Allocate(4096);
  ASSERT_TRUE(device.ok() && d_block.ok());
  DeviceArena room;
  ASSERT_TRUE(device->Begin(room, 1).ok());
  std::byte* const d_data = d_block->d_data();
  const auto launched = [&](const std::byte* d_source, std::byte* d_out) {
    const DevicePatch patch{d_source, d_out, VolumeStepKey(1)};
    return device->Launch({&patch, 1}, room, stream->get()).code();
  };
  EXPECT_EQ(launched(nullptr, d_data), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(launched(d_data, nullptr), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(launched(d_data + 1, d_data), absl::StatusCode::kInvalidArgument);
  const auto labelled = [&](const std::byte* d_source, std::byte* d_out) {
    const DeviceLabels labels{d_source, d_out, VolumeStepKey(1)};
    return device->LaunchLabels({&labels, 1}, room, stream->get()).code();
  };
  EXPECT_EQ(labelled(nullptr, d_data), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(labelled(d_data, nullptr), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace patchbay::ops
