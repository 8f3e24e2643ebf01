// Planning streams, locking runs and looking at images on slow storage.
#include <filesystem>
#include <utility>

#include "ops/all_ops.h"
#include "runtime/model/jobs/stream_request.h"
#include "runtime/model/plan/run_config.h"
#include "tests/contract/known_ops.h"
#include "tests/workers/jobs/slow_storage/slow_job.h"
#include "tests/workers/jobs/spectra/fixtures.h"
#include "workers/jobs/synth/synth.h"
#include "workers/stream/patch_reader.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class SlowStreams : public SlowJob {
 protected:
  /// A run without a table, sampled by classes and tissue.
  static Json Config(const std::string& more) {
    const auto config = plan::ParseRunConfig(
        StrCat("dataset: x\npatch: {size: [64, 64]}\nbatch: {global_size: 4}\n", more), "test");
    EXPECT_TRUE(config.ok()) << config.status();
    return plan::ToJson(*config);
  }

  /// Stores of one slide with tissue, which are one content: as a folder has them.
  std::vector<std::string> MakeStores() {
    EXPECT_TRUE(WriteTiff(Path("a.tif"), {PatternImage(300, 400)}).ok());
    Json settings = settings_;
    settings["tissue"] = "clam";
    settings["shard"] = 128;
    JobRunner ingest(Manifest({"a.tif"}), 1);
    ingest.Submit("ingest.plan", settings);
    ingest.Run();
    for (const Status& failure : ingest.Failures()) ADD_FAILURE() << Describe(failure);
    return Copies(Store());
  }
  /// As a cohort table names them, with a folder in which their stores are looked for.
  Json Table(const std::vector<std::string>& stores) const {
    plan::StreamManifest manifest{.images = {folder_ + "/"}};
    manifest.table.emplace().stores = Path("many");
    for (int i = 0; i < kVeryMany; ++i) {
      manifest.table->rows.push_back(
          {.path = fs::path(stores[static_cast<std::size_t>(i) % stores.size()])
                       .lexically_relative(folder_)
                       .string()});
    }
    return JsonOf(manifest);
  }
  std::string FirstResult(const JobRunner& job, const std::string& op, const char* key) {
    return job.ResultOf(op)[key].get<std::string>();
  }
};

TEST_F(SlowStreams, PlannedLockedAndShownKeepTheirLeases) {
  const std::vector<std::string> stores = MakeStores();
  const Json config = Config(
      "labels: {set: tissue, mask: true}\nsampling: {order: shuffled, tissue: {min_fraction: "
      "0.1}}\n");
  const JobRunner job = Run("stream.plan", config, {{"images", stores}});
  const Json planned = job.ResultOf("stream.join");
  ASSERT_TRUE(planned.is_object());
  Run("stream.plan", config, {{"images", {Path("many")}}});
  Run("lock.images", {{"config", config}, {"sets", {"tissue"}}}, {{"images", {Path("many")}}});
  Json manifest = planned["manifest"];
  manifest["out"] = Path("patches.png");
  Run("preview.patches", {{"plan", planned["plan"]}, {"patches", 16}}, manifest);
  ExpectLeasesHold(kStreamOps);
}

TEST_F(SlowStreams, OfTablesKeepTheirLeases) {
  const Json manifest = Table(MakeStores());
  Run("lock.images", {{"config", Config("")}, {"sets", {"tissue"}}}, manifest);
  ExpectLeasesHold({"lock.images"});
}

TEST_F(SlowStreams, LooksAtImagesKeepTheirLeases) {
  const std::vector<std::string> stores = MakeStores();
  SynthCtOptions series;
  series.size = {kVeryMany, 32, 32};
  ASSERT_TRUE(SynthCt(Folders::OfThisUser(), Path("ct"), series).ok());
  for (const bool hash : {false, true}) {
    Run("scan", {{"hash", hash}}, {{"images", {Path("many"), Path("a.tif"), Path("ct")}}});
  }
  for (const std::string& path : {stores[0], Path("a.tif"), Path("ct")}) {
    Run("inspect", Json::object(), {{"images", {path}}});
  }
  Run("verify", Json::object(), {{"images", {stores[0]}}});
  Run("preview.images", Json::object(), {{"images", stores}, {"out", Path("sheet.png")}});
  ExpectLeasesHold(kLookOps);
}

/// The lease of the first patch of a planned stream of one rank.
protocol::ShardLease FirstPatch(const protocol::StreamDescribed& described) {
  protocol::ShardLease lease;
  lease.stream = described.stream;
  lease.shard = {0, 0, 0, 0};
  lease.first_ordinal = ShardRun(described.geometry, 0, 0, 0).first_ordinal;
  lease.grant.count = 1;
  return lease;
}

TEST_F(SlowStreams, APatchOfManyChunksKeepsTheLeaseOfItsShard) {
  Run("synth.volume", {{"size", {128, 256, 256}}}, {{"out", Path("v.ome.zarr")}});
  const auto config = plan::ParseRunConfig(
      "dataset: x\npatch: {size: [128, 256, 256]}\nbatch: {global_size: 1}\n", "test");
  ASSERT_TRUE(config.ok()) << config.status();
  const JobRunner job =
      Run("stream.plan", plan::ToJson(*config), {{"images", {Path("v.ome.zarr")}}});
  const Json planned = job.ResultOf("stream.join");
  const auto made = plan::ParsePlan(planned["plan"].get<std::string>());
  ASSERT_TRUE(made.ok()) << made.status();
  protocol::StreamDescribed described;
  described.stream = 1;
  described.plan = made->Text();
  described.plan_digest = made->digest();
  described.manifest = DumpJson(planned["manifest"]);
  described.read_prefixes = {folder_};
  described.geometry = *made->Geometry(1);
  described.capacity = Capacity(described.geometry);
  ImageCache images(std::size_t{1} << 30,
                    [](const Folders& allowed, const std::string& path, const SlideChoice&) {
                      return OpenImage(allowed, path);
                    });
  auto context = StreamContext::Build(ops::Table(), described, images);
  ASSERT_TRUE(context.ok()) << context.status();
  const auto shard = std::make_shared<ShardWork>(*context, FirstPatch(described));
  FetchedPatch patch;
  SlowStorage::Begin(&shard->progress);
  const Status read = ReadPatch(
      shard, 0,
      [&shard] {
        ++shard->progress;
        return absl::OkStatus();
      },
      patch);
  EXPECT_LT(SlowStorage::End(), kShortLeaseMs) << "without progress for so many ms";
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_GT(SlowStorage::operations() * kOperationMs, kShortLeaseMs) << "longer than the lease";
}

TEST_F(SlowStreams, SyntheticImagesKeepTheirLeases) {
  Run("synth.slide", {{"size", {2000, 700}}}, {{"out", Path("s.svs")}});
  Run("synth.ct", {{"size", {kVeryMany, 32, 32}}}, {{"out", Path("ct")}});
  Run("synth.volume", {{"size", {64, 128, 128}}}, {{"out", Path("v.ome.zarr")}});
  ExpectLeasesHold(kSynthOps);
}

}  // namespace
}  // namespace patchbay::workers
