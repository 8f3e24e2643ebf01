// The maker on a GPU: patches of many shards in one launch have the bytes of the CPU, copies of one
// lane overlap kernels of another, and nothing is allocated once it has begun.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "tests/workers/pipeline/fake_stream.h"
#include "workers/stream/patch_maker.h"

namespace patchbay::workers {
namespace {

/// A shard's image on the GPU, its other arrays in host memory.
class DeviceWindow final : public ShardWindow {
 public:
  DeviceWindow(const StreamContext& context, const protocol::ShardLease& lease) {
    for (const ArrayLayout& array : context.layout().arrays) {
      arrays_.emplace_back(lease.grant.count * array.PatchBytes(), std::byte{0xEE});
    }
    image_ = *memory::DeviceBlock::Allocate(arrays_[0].size());
  }
  std::span<std::byte> host(std::size_t array) const override { return arrays_[array]; }
  std::byte* device(std::size_t array) const override {
    return array == 0 ? image_.d_data() : nullptr;
  }
  Status Deliver(const StageTimes&) override { return absl::OkStatus(); }
  bool DeliverBlocks() const override { return false; }

  std::vector<std::byte> Image() const {
    std::vector<std::byte> bytes(arrays_[0].size());
    auto stream = memory::OwnedGpuStream::Create();
    EXPECT_TRUE(memory::CopyToHost(bytes, image_.d_data(), stream->get()).ok());
    EXPECT_TRUE(stream->WaitSync().ok());
    return bytes;
  }

 private:
  mutable std::vector<std::vector<std::byte>> arrays_;
  memory::DeviceBlock image_;
};

/// All patches of the stream's first epoch, read.
struct Epoch {
  explicit Epoch(FakeStream& from) : stream(from), context(from.Context()) {
    for (std::uint64_t batch = 0; batch * kUnevenBatch < 24; ++batch) {
      for (std::uint32_t shard = 0; shard < ShardsInRank(stream.geometry, batch, 0); ++shard) {
        AddShard(stream.Lease(batch, shard));
      }
    }
  }
  void AddShard(const protocol::ShardLease& lease) {
    auto job = std::make_shared<ShardJob>(context, lease);
    job->window = std::make_unique<DeviceWindow>(*context, lease);
    for (std::uint32_t i = 0; i < lease.grant.count; ++i) {
      patches.push_back(std::make_unique<FetchedPatch>());
      EXPECT_TRUE(ReadPatch(job, i, *patches.back()).ok());
    }
    jobs.push_back(std::move(job));
  }

  FakeStream& stream;
  std::shared_ptr<StreamContext> context;
  std::vector<std::shared_ptr<ShardJob>> jobs;
  std::vector<std::unique_ptr<FetchedPatch>> patches;
};

struct Ended {
  std::size_t well = 0, badly = 0;
  PatchEnded Count() {
    return [this](std::unique_ptr<FetchedPatch> patch, const Status& status) {
      EXPECT_NE(patch, nullptr);
      ++(status.ok() ? well : badly);
    };
  }
};

std::unique_ptr<PatchMaker> MakerOfFirstGpu(PatchEnded ended) {
  return *MakeGpuPatchMaker(memory::ListGpus().front().uuid, std::move(ended));
}

#define PB_NEED_GPU()                                                 \
  do {                                                                \
    if (memory::ListGpus().empty()) GTEST_SKIP() << "no GPU is here"; \
  } while (false)

TEST(GpuPatchMakerOnGpu, PatchesOfManyShardsHaveTheBytesOfTheCpu) {
  PB_NEED_GPU();
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  for (const std::size_t at_once : {1u, 7u, 30u}) {
    Epoch epoch(stream);
    Ended ended;
    const auto maker = MakerOfFirstGpu(ended.Count());
    std::span<std::unique_ptr<FetchedPatch>> left = epoch.patches;
    while (!left.empty()) {
      const std::size_t some = std::min(at_once, left.size());
      maker->Make(left.first(some));
      left = left.subspan(some);
    }
    maker->Flush();
    EXPECT_EQ(ended.well, 30u);
    for (const auto& job : epoch.jobs) {
      const auto& window = static_cast<const DeviceWindow&>(*job->window);
      ASSERT_EQ(window.Image(), stream.Expected(*epoch.context, job->lease())) << at_once;
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

/// Lines "stream number kind" in the order in which they ran.
struct Ran {
  std::string stream;
  std::uint64_t number = 0;
  std::string kind;
};

std::vector<Ran> TimelineOf(const std::filesystem::path& folder) {
  std::vector<Ran> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (Ran ran; file >> ran.stream >> ran.number >> ran.kind;) lines.push_back(ran);
  }
  return lines;
}

/// What TimelineOfLanes runs.
TEST(GpuPatchMakerOnGpu, DISABLED_MakeAnEpochThreePatchesAtATime) {
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  Epoch epoch(stream);
  const auto maker = MakerOfFirstGpu([](std::unique_ptr<FetchedPatch>, const Status& status) {
    EXPECT_TRUE(status.ok()) << status;
  });
  for (std::size_t first = 0; first < 30; first += 3) {
    maker->Make(std::span(epoch.patches).subspan(first, 3));
  }
  maker->Flush();
}

/// The timeline of that, with work that runs as late and as interleaved as the streams allow.
std::vector<Ran> TimelineOfLanes(const std::filesystem::path& folder, const char* seed) {
  std::filesystem::create_directories(folder);
  const std::string command = StrCat(
      "PATCHBAY_EMULATED_GPUS=1 PATCHBAY_EMULATED_GPU_PACE=random "
      "PATCHBAY_EMULATED_GPU_SEED=",
      seed, " PATCHBAY_EMULATED_GPU_TIMELINE='", folder.string(), "' '",
      std::filesystem::canonical("/proc/self/exe").string(),
      "' --gtest_also_run_disabled_tests --gtest_brief=1 "
      "--gtest_filter='*DISABLED_MakeAnEpochThreePatchesAtATime'");
  EXPECT_EQ(std::system(command.c_str()), 0);
  return TimelineOf(folder);
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
  if (std::getenv("PATCHBAY_EMULATED_GPUS") == nullptr) GTEST_SKIP() << "needs the emulated device";
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / StrCat("lanes_", Hex64(RandomU64()));
  bool overlapped = false;
  for (const char* seed : {"1", "2", "3", "4"}) {
    const std::vector<Ran> lines = TimelineOfLanes(folder / seed, seed);
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
