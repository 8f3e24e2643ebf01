// The maker on a GPU: patches of many shards in one launch have the bytes of the CPU, copies of one
// lane overlap kernels of another, and nothing is allocated once it has begun.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/workers/pipeline/gpu_epoch.h"
#include "workers/stream/patch_maker.h"

namespace patchbay::workers {
namespace {

TEST(GpuPatchMakerOnGpu, PatchesOfManyShardsHaveTheBytesOfTheCpu) {
  PB_NEED_GPU();
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  for (const std::size_t at_once : {1u, 7u, 30u}) {
    Epoch epoch(stream);
    Ended ended;
    const auto maker = MakerOfFirstGpu(ended.Count());
    epoch.Run(*maker, at_once);
    EXPECT_EQ(ended.well, 30u);
    for (const auto& job : epoch.jobs) {
      ASSERT_EQ(epoch.WindowOf(*job).Image(), stream.Expected(*epoch.context, job->lease()))
          << at_once;
      EXPECT_GT(job->spent.gpu_ns, 0) << at_once;
      EXPECT_GT(job->spent.cpu_ns, 0) << at_once;
    }
  }
}

TEST(GpuPatchMakerOnGpu, AFailedOrRevokedPatchCostsTheOthersNothing) {
  PB_NEED_GPU();
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  Epoch epoch(stream);
  stream.hooks.on_decode = [](const Box& box) -> Status {
    return box.x == 32 && box.y == 16 ? absl::DataLossError("a bad tile") : absl::OkStatus();
  };
  epoch.jobs.front()->Revoke();
  Ended ended;
  const auto maker = MakerOfFirstGpu(ended.Count());
  maker->Make(epoch.patches);
  maker->Flush();
  EXPECT_EQ(ended.badly, 1u);
  EXPECT_EQ(ended.well, 29u);
  const auto is_marked = [](std::byte b) { return b == std::byte{0xEE}; };
  const auto revoked = epoch.jobs.front()->window->host(1);
  EXPECT_TRUE(std::all_of(revoked.begin(), revoked.end(), is_marked)) << "nothing was written";
}

std::uint64_t FreeBytes() { return memory::MemoryOf(0)->free_bytes; }

TEST(GpuPatchMakerOnGpu, WhereTheGpuHasRoomForOneLaneOneIsUsed) {
  PB_NEED_EMULATED_GPU();
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  std::uint64_t of_both = 0;
  const auto run = [&](std::size_t expected) {
    Epoch epoch(stream, false);
    Ended ended;
    const std::uint64_t before = FreeBytes();
    const auto maker = MakerOfFirstGpu(ended.Count());
    epoch.Run(*maker, 7);
    if (of_both == 0) of_both = before - FreeBytes();
    EXPECT_EQ(ended.well, expected);
    for (const auto& job : epoch.jobs) {
      if (expected == 0) break;
      EXPECT_TRUE(epoch.WindowOf(*job).Image() == stream.Expected(*epoch.context, job->lease()));
    }
  };
  run(30);
  ASSERT_GT(of_both, 0u);
  for (const std::uint64_t percent : {90u, 20u}) {
    const auto filler = memory::DeviceBlock::Allocate(FreeBytes() - of_both * percent / 100);
    ASSERT_TRUE(filler.ok()) << filler.status();
    run(percent == 20 ? 0 : 30);
  }
}

/// Run by TimelineOf in a process of its own.
TEST(GpuPatchMakerOnGpu, DISABLED_MakeAnEpochThreePatchesAtATime) {
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  Epoch epoch(stream);
  const auto maker = MakerOfFirstGpu([](std::unique_ptr<FetchedPatch>, const Status& status) {
    EXPECT_TRUE(status.ok()) << status;
  });
  epoch.Run(*maker, 3);
}

bool CopyUpOvertakesAKernel(const std::vector<Ran>& lines) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t k = i + 1; lines[i].kind == "up" && k < lines.size(); ++k) {
      if (lines[k].kind == "kernel" && lines[k].number < lines[i].number) return true;
    }
  }
  return false;
}

TEST(GpuPatchMakerOnGpu, CopiesOfOneLaneOverlapKernelsOfAnother) {
  PB_NEED_EMULATED_GPU();
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / StrCat("lanes_", Hex64(RandomU64()));
  bool overlapped = false;
  for (const char* seed : {"1", "8", "9", "15"}) {
    const std::vector<Ran> lines =
        TimelineOf("MakeAnEpochThreePatchesAtATime", folder / seed, seed);
    const auto kernels = std::count_if(lines.begin(), lines.end(),
                                       [](const Ran& ran) { return ran.kind == "kernel"; });
    EXPECT_EQ(kernels, 8) << "one launch for the patches of a call; six of 30 are padding";
    overlapped = overlapped || CopyUpOvertakesAKernel(lines);
    int seen = 0;
    for (const Ran& ran : lines) {
      seen += ran.kind == "kernel" ? 1 : 0;
      EXPECT_FALSE(ran.kind == "allocate" && seen > 1) << "allocated after the second launch";
    }
  }
  EXPECT_TRUE(overlapped) << "something orders the lanes";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace patchbay::workers
