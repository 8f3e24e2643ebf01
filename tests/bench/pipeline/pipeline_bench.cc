// The cost of the pipeline over its own decode and transform: the same shards of one image, once
// through the stages and their threads, once as a plain loop over bytes that are in memory already.
// PATCHBAY_BENCH_IMAGE names a slide or store; PATCHBAY_BENCH_POSITIONS is grid or random.
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include <benchmark/benchmark.h>

#include "ops/all_ops.h"
#include "runtime/model/stream/planned_stream.h"
#include "tests/contract/known_ops.h"
#include "workers/process/local_run.h"
#include "workers/stream/pipeline.h"
#include "workers/stream/tile_decoder.h"

namespace patchbay::workers {
namespace {

constexpr std::uint64_t kBatches = 8;

/// One slot of memory that every shard is written into, as a mapped ring would be.
class OneSlot final : public Delivery {
 public:
  explicit OneSlot(std::uint64_t size_bytes) : bytes_(size_bytes) {}
  StatusOr<std::unique_ptr<ShardWindow>> Open(const StreamContext& context,
                                              const protocol::ShardLease& lease) override {
    const std::uint64_t patch_bytes = context.layout().PatchBytes();
    return std::unique_ptr<ShardWindow>(new Window(std::span(bytes_).subspan(
        lease.grant.place * patch_bytes, lease.grant.count * patch_bytes)));
  }

 private:
  class Window final : public ShardWindow {
   public:
    explicit Window(std::span<std::byte> bytes) : bytes_(bytes) {}
    std::span<std::byte> host(std::size_t) const override { return bytes_; }
    bool DeliverBlocks() const override { return false; }
    Status Deliver(const StageTimes&) override { return absl::OkStatus(); }

   private:
    const std::span<std::byte> bytes_;
  };
  std::vector<std::byte> bytes_;
};

/// The stream of the image, planned as the worker would plan it; null with the reason when it
/// cannot be.
struct BenchStream {
  ImageCache images{std::size_t{64} << 20,
                    [](const Folders& allowed, const std::string& path, const SlideChoice&) {
                      return OpenImage(allowed, path);
                    }};
  std::shared_ptr<StreamContext> context;
  StreamGeometry geometry;
  std::string problem;

  BenchStream() {
    const Status status = Open();
    if (!status.ok()) problem = std::string(MessageOf(status));
  }

  Status Open() {
    const char* path = std::getenv("PATCHBAY_BENCH_IMAGE");
    if (path == nullptr) return absl::NotFoundError("PATCHBAY_BENCH_IMAGE is not set");
    const char* positions = std::getenv("PATCHBAY_BENCH_POSITIONS");
    const std::string yaml = StrCat(
        "dataset: x\nnumerics: cpu\npatch: {size: [512, 512]}\nsampling: {positions: ",
        positions == nullptr ? "grid" : positions,
        "}\nbatch: {global_size: 32, dtype: float16, tail: wrap}\n"
        "preprocess: [{normalize: {scale: 255, mean: [0.7, 0.55, 0.7], std: [0.2, 0.2, 0.2]}}]\n"
        "augment: [{flip: {}}]\n");
    PB_ASSIGN_OR_RETURN(const auto config, plan::ParseRunConfig(yaml, "bench"));
    TaskSignals signals;
    TaskContext task{Folders::OfThisUser(), ops::Table()};
    task.signals = &signals;
    task.rights = PathRights::All();
    task.allowed = AllowedFoldersOf(task.rights, task.state_folder);
    task.payload = plan::ToJson(config);
    task.manifest = {{"images", {path}}};
    PB_ASSIGN_OR_RETURN(const std::string result, RunJobHere("stream.plan", task));
    PB_ASSIGN_OR_RETURN(const PlannedStream planned, DecodePlannedStream(result));
    geometry = planned.geometry;
    protocol::StreamDescribed described;
    described.plan = planned.plan;
    described.plan_digest = Sha256Of(described.plan);
    described.manifest = planned.manifest;
    described.read_prefixes = {"/"};
    described.geometry = geometry;
    described.capacity = Capacity(geometry);
    PB_ASSIGN_OR_RETURN(context, StreamContext::Build(ops::Table(), described, images));
    return absl::OkStatus();
  }

  protocol::ShardLease Lease(std::uint64_t batch, std::uint32_t shard, std::uint64_t number) const {
    protocol::ShardLease lease;
    lease.lease = {1, number};
    lease.shard = {0, batch % BatchesPerEpoch(geometry), 0, shard};
    const PatchRun run = ShardRun(geometry, lease.shard.batch, 0, shard);
    lease.first_ordinal = run.first_ordinal;
    lease.grant.place = run.place;
    lease.grant.count = run.count;
    return lease;
  }
};

void DecodeAndTransformAlone(benchmark::State& state) {
  BenchStream stream;
  if (!stream.problem.empty()) return state.SkipWithError(stream.problem.c_str());
  OneSlot slot(Capacity(stream.geometry) * stream.context->layout().PatchBytes());
  std::vector<std::unique_ptr<FetchedPatch>> patches;
  for (std::uint64_t batch = 0; batch < 2; ++batch) {
    for (std::uint32_t s = 0; s < ShardsInRank(stream.geometry, 0, 0); ++s) {
      const auto lease = stream.Lease(batch, s, batch * 1000 + s + 1);
      auto job = std::make_shared<ShardWork>(stream.context, lease);
      job->window = *slot.Open(*stream.context, lease);
      for (std::uint32_t i = 0; i < lease.grant.count; ++i) {
        patches.push_back(std::make_unique<FetchedPatch>());
        const Status read = ReadPatch(
            job, i, [] { return absl::OkStatus(); }, *patches.back());
        if (!read.ok()) return state.SkipWithError(std::string(MessageOf(read)).c_str());
      }
    }
  }
  std::unique_ptr<FetchedPatch> back;
  const auto maker =
      MakeCpuPatchMaker([&](std::unique_ptr<FetchedPatch> patch, const Status& status) {
        PB_CHECK(status.ok());
        back = std::move(patch);
      });
  std::size_t next = 0;
  for (auto _ : state) {
    auto& patch = patches[next++ % patches.size()];
    maker->Make({&patch, 1});
    patch = std::move(back);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(DecodeAndTransformAlone)->MeasureProcessCPUTime()->UseRealTime();

void ThroughThePipeline(benchmark::State& state) {
  BenchStream stream;
  if (!stream.problem.empty()) return state.SkipWithError(stream.problem.c_str());
  OneSlot slot(Capacity(stream.geometry) * stream.context->layout().PatchBytes());
  std::mutex mu;
  std::condition_variable changed;
  std::size_t ended = 0;
  auto pipeline = Pipeline::Start(
      {}, slot,
      [](PatchEnded patch_ended) -> StatusOr<std::unique_ptr<PatchMaker>> {
        return MakeCpuPatchMaker(std::move(patch_ended));
      },
      [&](const protocol::ShardLease&, const Status& status, const protocol::WorkCost&) {
        PB_CHECK(status.ok());
        const std::lock_guard lock(mu);
        ++ended;
        changed.notify_all();
      });
  std::uint64_t number = 0;
  std::int64_t patches = 0;
  for (auto _ : state) {
    std::size_t expected = 0;
    {
      const std::lock_guard lock(mu);
      ended = 0;
    }
    for (std::uint64_t batch = 0; batch < kBatches; ++batch) {
      for (std::uint32_t s = 0; s < ShardsInRank(stream.geometry, 0, 0); ++s, ++expected) {
        const auto lease = stream.Lease(batch, s, ++number);
        PB_CHECK((*pipeline)->Submit(stream.context, lease).ok());
        patches += lease.grant.count;
      }
    }
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return ended == expected; });
  }
  state.SetItemsProcessed(patches);
}
BENCHMARK(ThroughThePipeline)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace patchbay::workers

BENCHMARK_MAIN();
