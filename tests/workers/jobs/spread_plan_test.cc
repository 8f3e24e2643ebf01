// Planning in many tasks: bad images, and a plan that does not depend on the groups.
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ops/all_ops.h"
#include "ops/chain/chain.h"
#include "runtime/model/plan/plan.h"
#include "tests/contract/known_ops.h"
#include "tests/workers/jobs/job_runner.h"
#include "tests/workers/sources/pattern_image.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/plan/plan_tasks.h"
#include "workers/process/local_run.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class SpreadPlan : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::canonical(fs::temp_directory_path()) / ("spread_plan_" + Hex64(RandomU64()));
    fs::create_directories(root_ / "d");
    context_.signals = &signals_;
    context_.rights = PathRights::All();
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
  }
  void TearDown() override { fs::remove_all(root_); }

  /// Adds `count` slides of different content to the dataset.
  void Slides(int count) {
    for (int i = 0; i < count; ++i) {
      const CraftedImage image = PatternImage(300, 200 + static_cast<std::uint32_t>(i));
      ASSERT_TRUE(WriteTiff(At(StrCat("d/", 100 + i, ".tif")), {image}).ok());
    }
  }
  std::string At(const std::string& name) const { return (root_ / name).string(); }

  Json Payload(const std::string& on_bad_image, int level = 0) const {
    const std::string yaml =
        StrCat("dataset: x\nseed: 5\nnumerics: cpu\non_bad_image: ", on_bad_image,
               "\npatch: {size: [64, 64], level: ", level, "}\nbatch: {global_size: 4}\n");
    const auto config = plan::ParseRunConfig(yaml, "test");
    EXPECT_TRUE(config.ok()) << config.status();
    return plan::ToJson(*config);
  }
  StatusOr<Json> Plan(const std::string& on_bad_image, int level = 0) {
    context_.payload = Payload(on_bad_image, level);
    context_.manifest = {{"images", {At("d")}}};
    PB_ASSIGN_OR_RETURN(const std::string result, RunJobHere("stream.plan", context_));
    return ParseJson(result, "plan");
  }

  fs::path root_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(SpreadPlan, TakesATaskForEveryFewImagesWithinWhatIsSentToThem) {
  EXPECT_EQ(OpeningTasks(1, 100), 1u);
  EXPECT_EQ(OpeningTasks(9, 100), 2u);
  EXPECT_GE(OpeningTasks(3'000, 200'000), 200u) << "for more workers than a hospital has";
  for (const std::size_t list_bytes : {1u << 20, 8u << 20, 32u << 20}) {
    const std::size_t tasks = OpeningTasks(100'000, list_bytes);
    EXPECT_GE(tasks, 16u);
    EXPECT_LE(tasks * list_bytes, std::size_t{1} << 30);
  }
}

TEST_F(SpreadPlan, HasTheSamePlanHoweverImagesAreGroupedAndWhenTheirTasksRun) {
  Slides(20);
  const auto whole = Plan("fail");
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const unsigned seed : {1u, 2u, 3u}) {
    JobRunner scheduler({{"images", {At("d")}}}, seed);
    scheduler.repeat_every = 2;
    scheduler.Submit("stream.plan", Payload("fail"));
    scheduler.Run();
    EXPECT_EQ(scheduler.CountOf("stream.open"), 3u);
    EXPECT_EQ(scheduler.ResultOf("stream.join"), *whole);
  }
  TaskContext root = context_;
  const auto found = RunTask("stream.plan", root);
  ASSERT_TRUE(found.ok()) << found.status();
  for (const int group : {1, 7, 20}) {
    TaskContext join = context_;
    join.inputs = {found->result};
    for (int first = 0; first < 20; first += group) {
      TaskContext open = context_;
      open.payload = {{"first", first},
                      {"count", std::min(group, 20 - first)},
                      {"level", 0},
                      {"label_sets", Json::array()},
                      {"on_bad_image", "fail"}};
      open.inputs = {found->result};
      const auto opened = RunTask("stream.open", open);
      ASSERT_TRUE(opened.ok()) << opened.status();
      join.inputs.push_back(opened->result);
    }
    const auto joined = RunTask("stream.join", join);
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(*ParseJson(joined->result, "plan"), *whole) << "groups of " << group;
  }
}

TEST_F(SpreadPlan, NamesTheBadImageAmongMany) {
  Slides(12);
  std::ofstream(At("d/105.tif"), std::ios::trunc) << "II*";
  const Status status = Plan("fail").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr(At("d/105.tif")));
}

TEST_F(SpreadPlan, LeavesOutABadImageAndSaysSo) {
  Slides(12);
  fs::create_directories(At("apart"));
  fs::rename(At("d/105.tif"), At("apart/105.tif"));
  const auto without = Plan("fail");
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ((*without)["skipped"]["count"], 0);
  std::ofstream(At("d/105.tif")) << "II*";
  fs::create_symlink("loop.svs", At("d/loop.svs"));
  const auto with = Plan("skip");
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ((*with)["plan"], (*without)["plan"]);
  EXPECT_EQ((*with)["manifest"], (*without)["manifest"]);
  const Json& skipped = (*with)["skipped"];
  EXPECT_EQ(skipped["count"], 2);
  ASSERT_EQ(skipped["images"].size(), 2u);
  EXPECT_EQ(skipped["images"][0]["path"], At("d/105.tif"));
  EXPECT_THAT(skipped["images"][0]["reason"].get<std::string>(), HasSubstr("lie past the end"));
  EXPECT_EQ(skipped["images"][1]["path"], At("d/loop.svs"));
}

TEST_F(SpreadPlan, ALockedFolderIsOneBadImage) {
  Slides(3);
  fs::create_directories(At("d/locked"));
  ASSERT_TRUE(WriteTiff(At("d/locked/a.tif"), {PatternImage(300, 300)}).ok());
  ASSERT_EQ(chmod(At("d/locked").c_str(), 0), 0);
  constexpr uid_t kNobody = 65534;
  const uid_t user = geteuid();  // root, who reads every folder, becomes somebody who does not
  ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  ASSERT_EQ(seteuid(user == 0 ? kNobody : user), 0);
  const auto failed = Plan("fail");
  const auto skipped = Plan("skip");
  ASSERT_EQ(seteuid(user), 0);
  ASSERT_EQ(chmod(At("d/locked").c_str(), 0700), 0);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(MessageOf(failed.status())), HasSubstr(At("d/locked")));
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_EQ((*skipped)["manifest"]["images"].size(), 3u);
  EXPECT_EQ((*skipped)["skipped"]["images"][0]["path"], At("d/locked"));
  EXPECT_THAT((*skipped)["skipped"]["images"][0]["reason"].get<std::string>(),
              HasSubstr("Permission denied"));
}

TEST_F(SpreadPlan, RefusesADatasetOfWhichNothingIsLeft) {
  std::ofstream(At("d/a.svs")) << "II*";
  std::ofstream(At("d/b.svs")) << "II*";
  const Status status = Plan("skip").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("none of 2 images can be read"));
}

TEST_F(SpreadPlan, WhatAGoodImageLacksIsAnErrorOfTheRun) {
  Slides(2);
  const Status status = Plan("skip", 3).status();
  EXPECT_THAT(std::string(MessageOf(status)),
              HasSubstr("key 'patch.level': the image has level 0 alone, not 3"));
}

TEST_F(SpreadPlan, WhatMayPassIsNoBadImage) {
  Slides(2);
  ASSERT_TRUE(Plan("skip").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(next, 0);
  close(next);
  const auto found = RunTask("stream.plan", context_);
  ASSERT_TRUE(found.ok()) << found.status();
  TaskContext open = context_;
  open.payload = {{"first", 0},
                  {"count", 2},
                  {"level", 0},
                  {"label_sets", Json::array()},
                  {"on_bad_image", "skip"}};
  open.inputs = {found->result};
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status status = RunTask("stream.open", open).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST_F(SpreadPlan, RefusesPayloadsThatAreNotOfTheList) {
  Slides(2);
  ASSERT_TRUE(Plan("skip").ok());
  const auto found = RunTask("stream.plan", context_);
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<std::pair<std::int64_t, std::int64_t>> bad = {
      {-1, 1}, {0, 0}, {0, 3}, {2, 1}, {1, INT64_MAX}, {INT64_MAX, 1}};
  for (const auto& [first, count] : bad) {
    TaskContext open = context_;
    open.payload = {{"first", first},
                    {"count", count},
                    {"level", 0},
                    {"label_sets", Json::array()},
                    {"on_bad_image", "skip"}};
    open.inputs = {found->result};
    EXPECT_EQ(RunTask("stream.open", open).status().code(), absl::StatusCode::kInvalidArgument)
        << first << " " << count;
  }
  TaskContext join = context_;
  join.inputs = {found->result, R"([[1]])"};
  EXPECT_EQ(RunTask("stream.join", join).status().code(), absl::StatusCode::kInvalidArgument);
  join.inputs = {found->result, R"([{"fault": "one only"}])"};
  EXPECT_EQ(RunTask("stream.join", join).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace patchbay::workers
