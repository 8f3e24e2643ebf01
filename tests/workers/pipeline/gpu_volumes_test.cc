// The maker on a GPU where every patch reads a box of its own: the bytes of the CPU whatever shares
// a lane, a lane that grows for one box and not again, and patches that do not fit refused by name.
#include <array>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/pipeline/gpu_epoch.h"

namespace patchbay::workers {
namespace {

const Extent kVolume = {20, 40, 36};

std::int16_t VoxelAt(std::int64_t z, std::int64_t y, std::int64_t x) {
  return static_cast<std::int16_t>((z * 131 + y * 37 + x * 11) % 1400 - 700);
}

/// int16, one level; VoxelAt is its voxel.
class FakeVolume final : public ImageSource {
 public:
  FakeVolume() {
    layout_.kind = "fake";
    layout_.dtype = DType::kInt16;
    layout_.channels = 1;
    layout_.levels.push_back({.size = kVolume, .chunk = kVolume});
  }
  const ImageLayout& layout() const override { return layout_; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<DecodeScratch>();
  }
  Status Fetch(int level, const Box& box, EncodedPatch& out) const override {
    out.level = level;
    out.box = box;
    return absl::OkStatus();
  }
  Status Decode(const EncodedPatch& patch, const TensorView& out, double fill,
                DecodeScratch&) const override {
    const Box& box = patch.box;
    for (std::int64_t z = 0; z < box.depth; ++z) {
      for (std::int64_t y = 0; y < box.height; ++y) {
        for (std::int64_t x = 0; x < box.width; ++x) {
          const Box voxel = {box.z + z, box.y + y, box.x + x, 1, 1, 1};
          const std::int16_t value = IsInside(voxel) ? VoxelAt(voxel.z, voxel.y, voxel.x)
                                                     : static_cast<std::int16_t>(fill);
          std::memcpy(out.data + z * out.stride_bytes[0] + y * out.stride_bytes[1] +
                          x * out.stride_bytes[2],
                      &value, sizeof value);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool IsInside(const Box& v) {
    return v.z >= 0 && v.y >= 0 && v.x >= 0 && v.z < kVolume.z && v.y < kVolume.y &&
           v.x < kVolume.x;
  }

  ImageLayout layout_;
};

constexpr char kRun[] = R"(
dataset: fake
numerics: cpu
seed: 11
patch: {size: [5, 9, 14], fill: -1024}
sampling: {positions: random, patches_per_epoch: 24}
batch: {global_size: 10, dtype: float16, tail: pad, meta: true}
preprocess: [{window: {range: [-150, 250]}}, {zscore: {over: body}}]
augment: [{flip: {axes: [z, y, x]}}, {affine: {p: 0.5, degrees: [-30, 30], scale: [0.7, 1.4]}},
          {elastic: {p: 0.4, points: 7, amplitude: 0.3}}, {gaussian_noise: {p: 0.5, std: [0, 0.1]}},
          {gaussian_blur: {p: 0.3, sigma: [0.5, 1]}}, {contrast: {p: 0.3, factor: [0.75, 1.25]}},
          {low_resolution: {p: 0.3, zoom: [0.5, 1]}}, {gamma: {p: 0.3, gamma: [0.7, 1.5], retain_stats: true}}]
)";

/// A stream of patches that turn, bend and lie partly outside.
struct VolumeStream : FakeStream {
  VolumeStream() : FakeStream(Tail::kPad, true, kUnevenBatch) {
    open_image = [] { return std::make_unique<FakeVolume>(); };
    plan::PlannedImage image;
    image.kind = "fake";
    image.size = kVolume;
    image.channels = 1;
    image.dtype = DType::kInt16;
    image.volume = plan::VolumeFacts{{2.5, 0.8, 0.8}, {}, 0.4, 0.3};
    Describe(kRun, image);
  }
};

std::vector<std::vector<std::byte>> ImagesOf(const Epoch& epoch) {
  std::vector<std::vector<std::byte>> images;
  for (const auto& job : epoch.jobs) images.push_back(epoch.WindowOf(*job).Image());
  return images;
}

std::vector<std::vector<std::byte>> MadeOnTheCpu(VolumeStream& stream) {
  Epoch epoch(stream, false);
  Ended ended;
  epoch.Run(*MakeCpuPatchMaker(ended.Count()), 1);
  EXPECT_EQ(ended.well, 30u);
  return ImagesOf(epoch);
}

TEST(GpuVolumesOnGpu, PatchesOfDifferentBoxesShareALaneAndHaveTheBytesOfTheCpu) {
  PB_NEED_GPU();
  VolumeStream stream;
  const auto expected = MadeOnTheCpu(stream);
  for (const bool on_device : {true, false}) {
    for (const std::size_t at_once : {1u, 7u, 30u}) {
      Epoch epoch(stream, on_device);
      Ended ended;
      epoch.Run(*MakerOfFirstGpu(ended.Count(), 1 << 20), at_once);
      EXPECT_EQ(ended.well, 30u);
      EXPECT_EQ(ImagesOf(epoch), expected) << at_once << (on_device ? " device" : " host");
    }
  }
}

TEST(GpuVolumesOnGpu, ALaneThatIsSmallerThanABoxGrowsForIt) {
  PB_NEED_GPU();
  VolumeStream stream;
  const auto expected = MadeOnTheCpu(stream);
  for (const std::size_t lane_bytes : {256u, 4096u, 12'000u}) {
    Epoch epoch(stream);
    Ended ended;
    epoch.Run(*MakerOfFirstGpu(ended.Count(), lane_bytes), 30);
    EXPECT_EQ(ended.well, 30u);
    EXPECT_EQ(ImagesOf(epoch), expected) << lane_bytes;
  }
}

/// Run by the next test, through TimelineOf, in a process of its own.
TEST(GpuVolumesOnGpu, DISABLED_MakeThreeEpochsOfVolumes) {
  VolumeStream stream;
  Ended ended;
  const auto maker = MakerOfFirstGpu(ended.Count(), 8192);
  for (int i = 0; i < 3; ++i) {
    Epoch epoch(stream, false);
    epoch.Run(*maker, 10);
  }
  EXPECT_EQ(ended.well, 90u);
}

TEST(GpuVolumesOnGpu, ALaneThatHasSeenItsLargestBoxAllocatesNothing) {
  PB_NEED_EMULATED_GPU();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / StrCat("volumes_", Hex64(RandomU64()));
  const std::vector<Ran> lines = TimelineOf("MakeThreeEpochsOfVolumes", folder, "1");
  std::filesystem::remove_all(folder);
  const auto allocates = [](const Ran& ran) { return ran.kind == "allocate"; };
  const auto last = std::find_if(lines.rbegin(), lines.rend(), allocates);
  ASSERT_NE(last, lines.rend());
  EXPECT_GT(last - lines.rbegin(), static_cast<std::ptrdiff_t>(lines.size()) / 2)
      << "the first epoch of three shows every box";
  const auto ups =
      std::count_if(lines.begin(), lines.end(), [](const Ran& ran) { return ran.kind == "up"; });
  // Three a launch: 15 launches would do for the patches, 45 do for their boxes.
  EXPECT_GT(ups, 90) << "lanes took more than their bytes";
}

}  // namespace
}  // namespace patchbay::workers
