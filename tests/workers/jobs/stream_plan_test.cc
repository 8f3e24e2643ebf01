// The planning task on real slides and stores, and everything it refuses.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "ops/chain/chain.h"
#include "runtime/core/hash.h"
#include "runtime/format/json/described.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/plan/planned_manifest.h"
#include "tests/contract/known_ops.h"
#include "workers/access/planned_images.h"
#include "workers/access/stamps.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/jobs/task/find_images.h"
#include "workers/jobs/task/image_digest.h"
#include "workers/process/local_run.h"
#include "workers/process/task_runner.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

class StreamPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("PATCHBAY_TEST_DATA");
    if (data == nullptr || !fs::exists(fs::path(data) / "wsi/CMU-1-Small-Region.svs")) {
      GTEST_SKIP() << "needs the slides of PATCHBAY_TEST_DATA";
    }
    slide_ = fs::canonical(fs::path(data) / "wsi/CMU-1-Small-Region.svs");
    root_ = fs::canonical(fs::temp_directory_path()) / ("stream_plan_" + Hex64(RandomU64()));
    fs::create_directories(root_ / "dataset/b");
    fs::copy(slide_, root_ / "dataset/b/two.svs");
    fs::copy(slide_, root_ / "dataset/one.SVS");
    std::ofstream(root_ / "dataset/notes.txt") << "not a slide";
    fs::create_directories(root_ / "dataset/.hidden");
    std::ofstream(root_ / "dataset/.hidden/three.svs") << "not a slide either";
    context_.signals = &signals_;
    context_.rights.read = {"/"};
    context_.state_folder = root_ / "state";
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    const std::string yaml =
        "dataset: x\nseed: 5\npatch: {size: [512, 512]}\nbatch: {global_size: 4, dtype: uint8}\n";
    const auto config = plan::ParseRunConfig(yaml, "test");
    ASSERT_TRUE(config.ok()) << config.status();
    context_.payload = plan::ToJson(*config);
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  StatusOr<Json> Plan(const std::vector<std::string>& images) {
    context_.manifest = {{"images", images}};
    PB_ASSIGN_OR_RETURN(const std::string result, RunJobHere("stream.plan", context_));
    return ParseJson(result, "result");
  }
  std::string Dataset() const { return (root_ / "dataset").string(); }

  fs::path slide_, root_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(StreamPlanTest, PlansASlideByItsContent) {
  const auto result = Plan({slide_});
  ASSERT_TRUE(result.ok()) << result.status();
  const auto plan = plan::ParsePlan((*result)["plan"].get<std::string>());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->images().size(), 1u);
  EXPECT_EQ(plan->images()[0].size, Flat(2967, 2220));
  EXPECT_EQ(plan->images()[0].digest.Hex(),
            "ed92d5a9f2e86df67640d6f92ce3e231419ce127131697fbbce42ad5e002c8a7");
  EXPECT_EQ((*result)["geometry"]["patches_per_epoch"], 6 * 5);
  EXPECT_EQ((*result)["geometry"]["global_batch"], 4);
  EXPECT_EQ((*result)["geometry"]["tail"], "keep");
  const auto where = PlannedImagesOf((*result)["manifest"], 1);
  ASSERT_TRUE(where.ok()) << where.status();
  EXPECT_EQ(where->paths, std::vector<std::string>{slide_.string()});
  EXPECT_EQ(where->stamps, std::vector<std::string>{*StampOf(Folders::OfThisUser(), slide_)});
}

TEST_F(StreamPlanTest, DoesNotDependOnWhereTheDatasetLies) {
  const auto here = Plan({Dataset()});
  ASSERT_TRUE(here.ok()) << here.status();
  fs::rename(root_ / "dataset", root_ / "another-name");
  const auto there = Plan({(root_ / "another-name").string()});
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ((*here)["plan"], (*there)["plan"]);
}

TEST_F(StreamPlanTest, SearchesFoldersInOrderAndSkipsWhatIsNoSlide) {
  const auto images = FindImages(context_, {Dataset()});
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(*images, (std::vector<std::string>{Dataset() + "/b/two.svs", Dataset() + "/one.SVS"}));
}

TEST_F(StreamPlanTest, TakesAnImageThatIsNamedTwiceOnce) {
  const auto images = FindImages(context_, {Dataset() + "/one.SVS", Dataset()});
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_EQ(*images, (std::vector<std::string>{Dataset() + "/one.SVS", Dataset() + "/b/two.svs"}));
}

TEST_F(StreamPlanTest, CountsTheRanksOfTheJob) {
  context_.payload["world_size"] = 2;
  const auto result = Plan({slide_});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)["geometry"]["world_size"], 2);
  context_.payload["world_size"] = 5;
  EXPECT_EQ(Plan({slide_}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StreamPlanTest, TellsTheSchedulerWhoseBitsThePlanWants) {
  const auto planned = [this](const char* key, const char* value) -> std::string {
    context_.payload.erase("numerics");
    context_.payload.erase("cluster_numerics");
    context_.payload[key] = value;
    const auto result = Plan({slide_});
    if (!result.ok()) return std::string(MessageOf(result.status()));
    const auto plan = plan::ParsePlan((*result)["plan"].get<std::string>());
    if (!plan.ok()) return std::string(MessageOf(plan.status()));
    EXPECT_EQ((*result)["geometry"]["numerics"], NameOf(*plan->config().numerics));
    return (*result)["geometry"]["numerics"];
  };
  EXPECT_EQ(planned("numerics", "cpu"), "cpu");
  EXPECT_EQ(planned("numerics", "cuda"), "cuda");
  EXPECT_EQ(planned("numerics", "strict"), "strict");
  EXPECT_EQ(planned("cluster_numerics", "cpu"), "cpu");
  EXPECT_EQ(planned("cluster_numerics", "cuda"), "cuda");
  EXPECT_EQ(planned("cluster_numerics", "gpu"),
            "stream.plan: key 'cluster_numerics': expected one of its names");
  EXPECT_EQ(planned("cluster_numerics", "strict"),
            "stream.plan: key 'cluster_numerics': neither cpu nor cuda");
}

TEST_F(StreamPlanTest, RemembersTheDigestOfASlide) {
  const std::string copy = Dataset() + "/one.SVS";
  const auto first = ImageDigest(context_, copy);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::uint64_t progress = signals_.progress;
  EXPECT_EQ(*ImageDigest(context_, copy), *first);
  EXPECT_EQ(signals_.progress.load(), progress) << "it was hashed again";
  std::ofstream(copy, std::ios::app) << "more";
  EXPECT_NE(*ImageDigest(context_, copy), *first);
}

TEST_F(StreamPlanTest, NamesTheImageItCannotOpen) {
  std::ofstream(root_ / "dataset/broken.svs") << "II*";
  const Status status = Plan({Dataset()}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(MessageOf(status).find(Dataset() + "/broken.svs"), std::string::npos) << status;
}

TEST_F(StreamPlanTest, NamesNoPathWhereItsErrorTravels) {
  fs::create_directories(root_ / "dataset/Jane Doe");
  std::ofstream(root_ / "dataset/Jane Doe/broken.svs") << "II*";
  const auto travels = [&](const std::string& dataset) {
    protocol::TaskLease lease;
    lease.op = "stream.plan";
    lease.payload = DumpJson(context_.payload);
    lease.manifest = DumpJson({{"images", {slide_.string(), dataset}}});
    TaskContext context = context_;
    const auto planned = RunLeasedTask(lease, context, WorkMeter());
    if (planned.outcome.code != 0) return TextOf(planned.outcome);
    lease.op = planned.spawned[0].op;
    lease.payload = planned.spawned[0].payload;
    TaskContext joining = context_;
    joining.inputs = {planned.result};
    return TextOf(RunLeasedTask(lease, joining, WorkMeter()).outcome);
  };
  const std::string broken = travels(Dataset());
  EXPECT_NE(broken.find("image 1"), std::string::npos) << broken;
  const std::string missing = travels(Dataset() + "/Jane Doe/nothing");
  EXPECT_NE(missing.find("store 1"), std::string::npos) << missing;
  for (const std::string& text : {broken, missing}) {
    for (const char* word : {"Jane", "broken", "nothing", "dataset/"}) {
      EXPECT_EQ(text.find(word), std::string::npos) << text;
    }
    EXPECT_EQ(text.find(root_.string()), std::string::npos) << text;
  }
}

TEST_F(StreamPlanTest, NamesTheImageWithoutTheLevel) {
  context_.payload["patch"]["level"] = 9;
  const Status status = Plan({slide_}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(status).find(slide_.string()), std::string::npos) << status;
}

TEST_F(StreamPlanTest, RefusesWhatIsNotThereAndWhatHoldsNoImage) {
  EXPECT_EQ(Plan({Dataset() + "/nothing"}).status().code(), absl::StatusCode::kNotFound);
  fs::create_directories(root_ / "empty");
  EXPECT_EQ(Plan({(root_ / "empty").string()}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Plan({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StreamPlanTest, RefusesPathsOutsideTheKeysFolders) {
  context_.rights.read = {Dataset()};
  context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
  EXPECT_EQ(Plan({slide_}).status().code(), absl::StatusCode::kPermissionDenied);
  fs::create_symlink(slide_, root_ / "dataset/link.svs");
  EXPECT_EQ(Plan({Dataset()}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(PlannedImages, LieBelowTheFolderTheyShare) {
  const std::vector<std::vector<std::string>> cases = {
      {"/a/b/one.svs", "/a/b/other.svs", "/a/b/deep/three.svs"},
      {"/a/one", "/a/one-more"},
      {"/a/b/store.zarr"},
      {"/a.svs", "/b/c.svs"},
  };
  for (const auto& paths : cases) {
    const std::vector<std::string> stamps(paths.size(), "1.2");
    const Json manifest = JsonOf(plan::PlannedManifest::Of(paths, stamps));
    const auto back = PlannedImagesOf(manifest, paths.size());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->paths, paths) << DumpJson(manifest);
    EXPECT_EQ(back->stamps, stamps);
  }
  EXPECT_EQ(JsonOf(plan::PlannedManifest::Of(cases[0], {}))["root"], "/a/b/");
}

/// Bytes of the plan and its manifest for `count` images.
std::size_t PlanBytes(std::size_t count, const std::string& kind, const std::string& name,
                      const std::string& stamp) {
  PlannedImages where;
  std::vector<plan::PlannedImage> images(count);
  for (std::size_t i = 0; i < count; ++i) {
    where.paths.push_back(StrCat("/archive/of/the/hospital/", Hex64(i), name));
    where.stamps.push_back(stamp);
    images[i].digest = Sha256Of(StrCat(i));
    images[i].kind = kind;
    images[i].size = Flat(100'000, 100'000);
  }
  const auto config =
      plan::ParseRunConfig("dataset: x\nnumerics: cpu\npatch: {size: [512, 512]}\n", "test");
  EXPECT_TRUE(config.ok()) << config.status();
  const auto plan = plan::Plan::Build(*config, images);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return DumpJson({{"plan", plan->Text()},
                   {"manifest", JsonOf(plan::PlannedManifest::Of(where.paths, where.stamps))}})
      .size();
}

TEST(PlannedImages, AsManyAsTheirPageSaysFitAPlan) {
  constexpr std::size_t kGeometryBytes = 4096;
  const std::size_t most = protocol::kMaxInlineResultBytes - kGeometryBytes;
  EXPECT_LT(PlanBytes(8000, "zarr", ".ome.zarr", ""), most);
  EXPECT_LT(PlanBytes(6000, "aperio", "-of-forty-characters.svs", "12a05f200.18a7c3f2e1d0b5a4"),
            most);
}

TEST_F(StreamPlanTest, StopsWhenItsLeaseIsRevoked) {
  signals_.cancelled = true;
  EXPECT_EQ(Plan({Dataset()}).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace patchbay::workers
