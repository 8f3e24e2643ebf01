// A staged job: its tasks, the job's folder in the output folder, and refusals.
#include "workers/jobs/staged/staged_job.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/hash.h"
#include "runtime/core/outcome_pseudonym.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/os/pid_stamp.h"
#include "tests/described.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

const char kKey[] = "0123456789abcdef0123456789abcdef";

class StagedJobTest : public testing::Test {
 protected:
  void SetUp() override {
    out_ = fs::canonical(fs::temp_directory_path()) / ("staged_job_" + Hex64(RandomU64()));
    fs::create_directories(out_);
    context_.manifest = {{"out", out_.string()}};
    context_.payload = {{"job_key", kKey}, {"slide", 1}};
    context_.rights.write = {out_.string()};
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    context_.signals = &signals_;
    manifest_.sources = {"/slides/a.svs", "/slides/b.svs"};
    manifest_.pseudonym_key = "00ff";
  }
  void TearDown() override { fs::remove_all(out_); }

  StagedFolders Folders() { return StagedFoldersOf(context_, "measure").value(); }

  fs::path out_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
  StagedManifest manifest_;
};

TEST_F(StagedJobTest, ManifestComesBackAsItWasSaved) {
  test::ExpectEveryFieldComesBack<StagedManifest>();
  test::ExpectEveryFieldComesBack<JobManifest>();
  test::ExpectEveryFieldComesBack<LabelRow>();
  test::ExpectEveryFieldComesBack<PlannedJob>();
  test::ExpectEveryFieldComesBack<StagePayload>();
  test::ExpectEveryFieldComesBack<LabelsPayload>();
  test::ExpectEveryFieldComesBack<PrunedStore>();
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  const auto loaded = LoadStagedManifest(Folders());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(JsonOf(*loaded), JsonOf(manifest_));
}

TEST_F(StagedJobTest, ManifestNamesFilesSoThatOnlyItsOwnerReadsIt) {
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  const std::string file = Folders().Job() + "/manifest.json";
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(Folders().Job()).permissions(), fs::perms::owner_all);
}

TEST_F(StagedJobTest, RefusesAManifestThatIsNotOne) {
  EXPECT_EQ(LoadStagedManifest(Folders()).status().code(), absl::StatusCode::kNotFound);
  fs::create_directories(Folders().Job());
  for (const char* text : {"", "[]", R"({"sources": [], "settings": {}})",
                           R"({"sources": "all", "settings": {}, "pseudonym_key": ""})",
                           R"({"sources": [1], "settings": {}, "pseudonym_key": ""})",
                           R"({"sources": [], "pseudonym_key": ""})"}) {
    std::ofstream(Folders().Job() + "/manifest.json") << text;
    EXPECT_EQ(LoadStagedManifest(Folders()).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST_F(StagedJobTest, RefusesAKeyThatIsNotAHashAndAFolderThatIsNotTheSubmitters) {
  for (const char* key :
       {"", "../../../../../../../etc/cron.d/x", "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef0123456789abcdef0"}) {
    context_.payload["job_key"] = key;
    EXPECT_EQ(StagedFoldersOf(context_, "measure").status().code(),
              absl::StatusCode::kInvalidArgument)
        << key;
  }
  context_.payload["job_key"] = kKey;
  context_.manifest["out"] = out_.parent_path().string();
  EXPECT_EQ(StagedFoldersOf(context_, "measure").status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(StagedJobTest, RefusesASlideThatTheManifestDoesNotHave) {
  StagedTask task(context_.allowed);
  task.folders = Folders();
  task.manifest = manifest_;
  EXPECT_TRUE(TakeSlide(context_, task).ok());
  EXPECT_EQ(task.slide, 1);
  const Status settled = context_.subjects.Settle(
      ErrorAbout(absl::StatusCode::kDataLoss, "open", "/slides/b.svs", "cut"));
  EXPECT_EQ(MessageOf(settled), "open: slide 1: cut");
  for (const Json& slide : {Json(-1), Json(2), Json("1"), Json()}) {
    context_.payload["slide"] = slide;
    const Status status = TakeSlide(context_, task);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << slide;
    EXPECT_EQ(MessageOf(status).find("measure payload"), 0u) << status;
  }
}

TEST_F(StagedJobTest, PseudonymDependsOnTheKeyAndTheContentAlone) {
  StagedManifest other = manifest_;
  other.sources.clear();
  EXPECT_EQ(PseudonymOf(manifest_, Sha256Of("a")), PseudonymOf(other, Sha256Of("a")));
  EXPECT_NE(PseudonymOf(manifest_, Sha256Of("a")), PseudonymOf(manifest_, Sha256Of("b")));
  other.pseudonym_key = "00fe";
  EXPECT_NE(PseudonymOf(manifest_, Sha256Of("a")), PseudonymOf(other, Sha256Of("a")));
}

TEST_F(StagedJobTest, RemovesItsFolderAndLeavesAnotherJobsAlone) {
  const StagedFolders mine = Folders();
  StagedFolders another = mine;
  another.job_key = std::string(kJobKeyDigits, 'f');
  ASSERT_TRUE(SaveStagedManifest(mine, manifest_).ok());
  ASSERT_TRUE(SaveStagedManifest(another, manifest_).ok());
  RemoveJobFolder(context_, mine);
  RemoveJobFolder(context_, mine);
  EXPECT_FALSE(fs::exists(mine.Job()));
  EXPECT_TRUE(fs::exists(another.Job()));
  RemoveJobFolder(context_, another);
  EXPECT_TRUE(fs::is_empty(out_));
}

/// A command on this machine that has ended: its pid is free, or belongs to another process.
PidStamp EndedCommand() {
  PidStamp stamp = *ThisPid();
  ++stamp.started;
  return stamp;
}

TEST_F(StagedJobTest, AFolderThatAnotherRunOwnsStaysUntilThatOneRemovesIt) {
  const StagedFolders mine = Folders();
  StagedFolders twin = mine;
  twin.run = 0xaa;
  twin.command = *ThisPid();
  for (const StagedFolders& run : {mine, twin}) {
    ASSERT_TRUE(SaveStagedManifest(run, manifest_).ok());
  }
  RemoveJobFolder(context_, mine);
  RemoveJobFolder(context_, mine);
  EXPECT_TRUE(fs::exists(mine.Job() + "/manifest.json"));
  RemoveJobFolder(context_, twin);
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(StagedJobTest, AFolderIsRemovedWhereTheOtherRunsCommandWasKilled) {
  StagedFolders killed = Folders();
  killed.run = 0xaa;
  killed.command = EndedCommand();
  ASSERT_TRUE(SaveStagedManifest(killed, manifest_).ok());
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  RemoveJobFolder(context_, Folders());
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(StagedJobTest, ARunThatLeftTheFolderForARetryDoesNotKeepItAndOwnsItAgainInTheRetry) {
  StagedFolders left = Folders();
  left.run = 0xaa;
  ASSERT_TRUE(SaveStagedManifest(left, manifest_).ok());
  LeaveJobFolder(left);
  EXPECT_TRUE(fs::exists(left.Job() + "/manifest.json"));
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  OwnJobFolder(left);
  RemoveJobFolder(context_, Folders());
  EXPECT_TRUE(fs::exists(left.Job()));
  LeaveJobFolder(left);
  RemoveJobFolder(context_, Folders());
  EXPECT_TRUE(fs::is_empty(out_));
  OwnJobFolder(left);
  EXPECT_FALSE(fs::exists(left.Root()));
}

TEST_F(StagedJobTest, OrphansAreTheFoldersWhoseOwnersHaveAllEnded) {
  const auto with_owner = [&](char digit, const std::optional<PidStamp>& command) {
    StagedFolders folders = Folders();
    folders.job_key = std::string(kJobKeyDigits, digit);
    folders.command = command;
    EXPECT_TRUE(SaveStagedManifest(folders, manifest_).ok());
    return folders;
  };
  const auto killed = with_owner('a', EndedCommand());
  const auto living = with_owner('b', *ThisPid());
  const auto of_a_cluster = with_owner('c', {});
  const auto for_a_retry = with_owner('d', {});
  LeaveJobFolder(for_a_retry);
  PidStamp elsewhere = EndedCommand();
  elsewhere.host += "0";
  const auto on_another_machine = with_owner('e', elsewhere);
  RemoveOrphanedJobFolders(context_, Folders());
  EXPECT_FALSE(fs::exists(killed.Job()));
  for (const StagedFolders& kept : {living, of_a_cluster, for_a_retry, on_another_machine}) {
    EXPECT_TRUE(fs::exists(kept.Job())) << kept.job_key;
  }
}

TEST_F(StagedJobTest, RefusesARunThatIsNotANumberOfItsOwn) {
  for (const Json& run : {Json("../../x"), Json(""), Json(-7), Json(0.5)}) {
    context_.manifest["run"] = run;
    EXPECT_EQ(StagedFoldersOf(context_, "measure").status().code(),
              absl::StatusCode::kInvalidArgument)
        << run;
  }
}

TEST_F(StagedJobTest, RemovingAFilePerSlideReportsProgressForEach) {
  constexpr int kSlides = 300;
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  for (int i = 0; i < kSlides; ++i) {
    std::ofstream(StrCat(Folders().Job(), "/slides/", i, ".json")) << "{}";
  }
  const std::uint64_t before = signals_.progress;
  RemoveJobFolder(context_, Folders());
  EXPECT_FALSE(fs::exists(Folders().Job()));
  EXPECT_GE(signals_.progress - before, static_cast<std::uint64_t>(kSlides));
}

Json g_result;  ///< result of the summary of kMeasure

StatusOr<TaskOutput> FailAsAsked(TaskContext& context) {
  return absl::Status(context.payload["code"].get<absl::StatusCode>(), "why");
}
StatusOr<TaskOutput> Excuse(TaskContext& /*context*/, const Status& /*why*/) {
  TaskOutput output;
  output.result = "excused";
  return output;
}
StatusOr<PlannedJob> FindTwo(TaskContext& /*context*/, const StagedFolders& folders) {
  return PlannedJob{.job_key = folders.out.empty() ? "" : kKey, .sources = 2, .free_bytes = 7};
}
StatusOr<StagedSummary> Summary(TaskContext& /*context*/) { return StagedSummary{g_result, true}; }

constexpr Stage kStages[] = {{"open", FailAsAsked, Excuse}, {"part", FailAsAsked}};
const StagedJob kMeasure = {"measure", FindTwo, kStages, Summary};
const StagedJob kInStores = {"draw", FindTwo, kStages, nullptr, "row"};

TEST_F(StagedJobTest, ThePlanSpawnsATaskOfEachSourceAndTheSummaryAfterAllOfThem) {
  const auto plan = kMeasure.Run("measure.plan", context_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*ParseJson(plan->result, "plan"),
            Json({{"job_key", kKey}, {"sources", 2}, {"summary_task", 3}, {"free_bytes", 7}}));
  ASSERT_EQ(plan->spawned.size(), 3u);
  const protocol::TaskSpec& second = plan->spawned[1];
  EXPECT_EQ(second.op, "measure.open");
  EXPECT_EQ(second.label, "slide 1");
  EXPECT_EQ(second.group, 2u);
  EXPECT_EQ(*ParseJson(second.payload, "second"), Json({{"job_key", kKey}, {"slide", 1}}));
  EXPECT_EQ(plan->spawned[2].op, "measure.summary");
  EXPECT_TRUE(plan->spawned[2].after_failures);
}

TEST_F(StagedJobTest, AJobInsideStoresHasTasksWithThePayloadOfItsPlanAndNothingElse) {
  context_.manifest = Json::object();
  context_.payload = {{"set", "tumour"}};
  const auto plan = kInStores.Run("draw.plan", context_);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(*ParseJson(plan->result, "plan"), Json({{"sources", 2}, {"free_bytes", 7}}));
  ASSERT_EQ(plan->spawned.size(), 2u);
  EXPECT_EQ(plan->spawned[0].label, "row 0");
  EXPECT_EQ(*ParseJson(plan->spawned[0].payload, "first"), Json({{"set", "tumour"}, {"row", 0}}));
  EXPECT_EQ(kInStores.Ops(), (std::vector<std::string>{"draw.plan", "draw.open", "draw.part"}));
}

TEST_F(StagedJobTest, AFailureIsReplacedByItsStagesHookUnlessTheTaskWasCancelled) {
  context_.payload["code"] = absl::StatusCode::kDataLoss;
  EXPECT_EQ(kMeasure.Run("measure.open", context_)->result, "excused");
  EXPECT_TRUE(absl::IsDataLoss(kMeasure.Run("measure.part", context_).status()));
  context_.payload["code"] = absl::StatusCode::kCancelled;
  EXPECT_TRUE(absl::IsCancelled(kMeasure.Run("measure.open", context_).status()));
}

TEST_F(StagedJobTest, AFailureCarriesThePseudonymOfItsSourceWhereTheContentCanBeRead) {
  const auto failure = [&](absl::StatusCode code) {
    context_.payload["code"] = code;
    return OutcomeOf(kMeasure.Run("measure.part", context_).status());
  };
  manifest_.sources[1] = (out_ / "b.svs").string();
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  context_.rights.read = {out_.string()};
  EXPECT_EQ(PseudonymIn(failure(absl::StatusCode::kDataLoss)), "") << "the file is not there";
  std::ofstream(manifest_.sources[1]) << "pixels";
  const Outcome lost = failure(absl::StatusCode::kDataLoss);
  EXPECT_EQ(PseudonymIn(lost), PseudonymOf(manifest_, Sha256Of("pixels")));
  EXPECT_EQ(TextOf(lost), "why") << "no line shows it";
  EXPECT_EQ(PseudonymIn(failure(absl::StatusCode::kUnavailable)), "") << "it is tried again";
  manifest_.pseudonym_key.clear();
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  EXPECT_EQ(PseudonymIn(failure(absl::StatusCode::kDataLoss)), "") << "it keeps names";
}

TEST_F(StagedJobTest, OpeningASourceMakesTheRunAnOwnerAgain) {
  ASSERT_TRUE(SaveStagedManifest(Folders(), manifest_).ok());
  LeaveJobFolder(Folders());
  context_.payload["code"] = absl::StatusCode::kDataLoss;
  kMeasure.Run("measure.part", context_).IgnoreError();
  EXPECT_FALSE(fs::exists(Folders().OwnerFile()));
  kMeasure.Run("measure.open", context_).IgnoreError();
  EXPECT_TRUE(fs::exists(Folders().OwnerFile()));
}

TEST_F(StagedJobTest, LargeResultsTravelAsAFileNamedByItsHash) {
  g_result = "small";
  EXPECT_EQ(kMeasure.Run("measure.summary", context_)->result, DumpJson(g_result));
  g_result = std::string(protocol::kMaxInlineResultBytes + 1, 'x');
  const std::string large = DumpJson(g_result), hash = Sha256Of(large).Hex();
  const auto summary = kMeasure.Run("measure.summary", context_);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_LT(summary->result.size(), 1000u);
  const std::string file = StrCat(out_.string(), "/", hash, ".result");
  EXPECT_EQ(*ParseJson(summary->result, "reference"),
            Json({{"result_file", file}, {"sha256", hash}, {"bytes", large.size()}}));
  EXPECT_EQ(*ReadFile(patchbay::Folders::OfThisUser(), file, large.size()), large);
  context_.rights.write = {"/nowhere"};
  context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
  EXPECT_EQ(kMeasure.Run("measure.summary", context_).status().code(),
            absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace patchbay::workers
