// Shards whose images are on a GPU, and the work that ran there, for tests of the maker on a GPU.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "tests/workers/pipeline/fake_stream.h"
#include "workers/stream/patch_maker.h"

namespace patchbay::workers {

/// A shard's image on the GPU, or in host memory as its other arrays are.
class DeviceWindow final : public ShardWindow {
 public:
  DeviceWindow(const StreamContext& context, const protocol::ShardLease& lease, bool on_device) {
    for (const ArrayLayout& array : context.layout().arrays) {
      arrays_.emplace_back(lease.grant.count * array.PatchBytes(), std::byte{0xEE});
    }
    if (on_device) image_ = *memory::DeviceBlock::Allocate(arrays_[0].size());
  }
  std::span<std::byte> host(std::size_t array) const override { return arrays_[array]; }
  std::byte* device(std::size_t array) const override {
    return array == 0 ? image_.d_data() : nullptr;
  }
  Status Deliver(const StageTimes&) override { return absl::OkStatus(); }
  bool DeliverBlocks() const override { return false; }

  std::vector<std::byte> Image() const {
    if (image_.d_data() == nullptr) return arrays_[0];
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

/// All patches of the stream's first epoch, 24 and padding, read.
struct Epoch {
  explicit Epoch(FakeStream& from, bool is_on_device = true)
      : stream(from), on_device(is_on_device), context(from.Context()) {
    for (std::uint64_t batch = 0; batch * kUnevenBatch < 24; ++batch) {
      for (std::uint32_t shard = 0; shard < ShardsInRank(stream.geometry, batch, 0); ++shard) {
        AddShard(stream.Lease(batch, shard));
      }
    }
  }
  void AddShard(const protocol::ShardLease& lease) {
    auto job = std::make_shared<ShardWork>(context, lease);
    job->window = std::make_unique<DeviceWindow>(*context, lease, on_device);
    for (std::uint32_t i = 0; i < lease.grant.count; ++i) {
      patches.push_back(std::make_unique<FetchedPatch>());
      EXPECT_TRUE(ReadPatch(
                      job, i, [] { return absl::OkStatus(); }, *patches.back())
                      .ok());
    }
    jobs.push_back(std::move(job));
  }

  const DeviceWindow& WindowOf(const ShardWork& job) const {
    return static_cast<const DeviceWindow&>(*job.window);
  }
  /// Has the maker make them, so many a call.
  void Run(PatchMaker& maker, std::size_t at_once) {
    for (std::span left(patches); !left.empty();
         left = left.subspan(std::min(at_once, left.size()))) {
      maker.Make(left.first(std::min(at_once, left.size())));
    }
    maker.Flush();
  }

  FakeStream& stream;
  const bool on_device;
  std::shared_ptr<StreamContext> context;
  std::vector<std::shared_ptr<ShardWork>> jobs;
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

inline std::unique_ptr<PatchMaker> MakerOfFirstGpu(PatchEnded ended,
                                                   std::size_t lane_bytes = kLaneBytesMax) {
  return *MakeGpuPatchMaker(memory::ListGpus().front().uuid, std::move(ended), lane_bytes);
}

#define PB_NEED_GPU()                                                 \
  do {                                                                \
    if (memory::ListGpus().empty()) GTEST_SKIP() << "no GPU is here"; \
  } while (false)

/// For tests that need the emulated device, or would disturb other programs on a real one.
#define PB_NEED_EMULATED_GPU()                                                                  \
  do {                                                                                          \
    PB_NEED_GPU();                                                                              \
    if (std::getenv("PATCHBAY_EMULATED_GPUS") == nullptr) GTEST_SKIP() << "a real GPU is here"; \
  } while (false)

/// Lines "stream number kind" in the order in which they ran.
struct Ran {
  std::string stream;
  std::uint64_t number = 0;
  std::string kind;
};

inline std::vector<Ran> ReadTimeline(const std::filesystem::path& folder) {
  std::vector<Ran> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (Ran ran; file >> ran.stream >> ran.number >> ran.kind;) lines.push_back(ran);
  }
  return lines;
}

/// The timeline of a disabled test of this program, with work that runs as late and as interleaved
/// as the streams allow.
inline std::vector<Ran> TimelineOf(const std::string& test, const std::filesystem::path& folder,
                                   const char* seed) {
  std::filesystem::create_directories(folder);
  const std::string command = StrCat(
      "PATCHBAY_EMULATED_GPUS=1 PATCHBAY_EMULATED_GPU_PACE=random "
      "PATCHBAY_EMULATED_GPU_SEED=",
      seed, " PATCHBAY_EMULATED_GPU_TIMELINE='", folder.string(), "' '",
      std::filesystem::canonical("/proc/self/exe").string(),
      "' --gtest_also_run_disabled_tests --gtest_brief=1 "
      "--gtest_filter='*DISABLED_",
      test, "'");
  EXPECT_EQ(std::system(command.c_str()), 0);
  return ReadTimeline(folder);
}

}  // namespace patchbay::workers
