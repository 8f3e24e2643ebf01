// Results that one message does not carry.
#include <gtest/gtest.h>

#include "runtime/format/json/json.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

constexpr std::size_t kPart = protocol::kMaxInlineResultBytes;

class LargeResult : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
  }
  protocol::TaskLease Start(const std::string& kind) {
    job = rig.Submit("key", kind);
    return rig.Granted().at(0);
  }
  bool Put(const protocol::TaskLease& lease, std::uint64_t offset, const std::string& bytes,
           PeerId worker = CoreRig::kWorker0) {
    rig.Tell(worker, protocol::PutResultPart{lease.lease, lease.task, offset, bytes});
    return rig.Find<protocol::ResultPartKept>() != nullptr;
  }
  /// As a worker does it: all but the end goes before the report.
  void Finish(const protocol::TaskLease& lease, const std::string& result) {
    std::size_t at = 0;
    for (; result.size() - at > kPart; at += kPart) {
      ASSERT_TRUE(Put(lease, at, result.substr(at, kPart)));
    }
    Report(lease, result.substr(at), at);
  }
  void Report(const protocol::TaskLease& lease, const std::string& end, std::uint64_t offset,
              PeerId worker = CoreRig::kWorker0) {
    protocol::TasksFinished finished;
    finished.items.push_back({lease.lease, lease.task, {}, end, {}, 0, offset});
    rig.Tell(worker, finished);
  }
  std::string Fetch() {
    std::string result;
    for (;;) {
      rig.Tell(CoreRig::kOps, protocol::FetchResult{{job, 0}, result.size()});
      const auto* fetched = rig.Find<protocol::ResultFetched>();
      if (fetched == nullptr) return "none";
      EXPECT_LE(fetched->result.size(), kPart);
      result += fetched->result;
      if (fetched->result.empty() || result.size() == fetched->result_bytes) return result;
    }
  }
  static std::string Text(std::size_t bytes) {
    std::string text(bytes, 'x');
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (i * i / 7) % 26);
    return text;
  }
  CoreRig rig;
  JobId job = 0;
};

TEST_F(LargeResult, ComesBackAsItWasPutAlsoFromTheJournal) {
  const std::string text = Text(3 * kPart + 17);
  Finish(Start("noop"), text);
  EXPECT_TRUE(Fetch() == text);
  rig.Restart();
  EXPECT_TRUE(Fetch() == text);
}

TEST_F(LargeResult, WhosePartsAreLostIsMadeAgain) {
  const protocol::TaskLease lease = Start("noop");
  EXPECT_FALSE(Put(lease, kPart, "the second part first"));
  Report(lease, "the end", kPart);
  EXPECT_EQ(rig.Row(job).state, protocol::JobState::kRunning);
  rig.Pass(2000);
  const auto again = rig.Granted();
  ASSERT_EQ(again.size(), 1u);
  Finish(again[0], Text(kPart + 1));
  EXPECT_TRUE(Fetch() == Text(kPart + 1));
}

TEST_F(LargeResult, PartSaidTwiceIsKeptOnce) {
  const protocol::TaskLease lease = Start("noop");
  EXPECT_TRUE(Put(lease, 0, "first "));
  EXPECT_TRUE(Put(lease, 6, "second "));
  EXPECT_TRUE(Put(lease, 0, "first "));
  Report(lease, "third", 13);
  EXPECT_EQ(Fetch(), "first second third");
}

TEST_F(LargeResult, IsLeftAloneByAReportOfAWorkerThatDoesNotHoldTheLease) {
  rig.AddWorker(1);
  const protocol::TaskLease lease = Start("noop");
  EXPECT_TRUE(Put(lease, 0, "first "));
  Report(lease, "another's", 6, CoreRig::kWorker0 + 1);
  Report(lease, "second", 6);
  EXPECT_EQ(Fetch(), "first second");
}

TEST_F(LargeResult, IsBoundedAndBelongsToWhoHoldsTheLease) {
  rig.AddWorker(1);
  const protocol::TaskLease lease = Start("noop");
  EXPECT_FALSE(Put(lease, 0, "x", CoreRig::kWorker0 + 1));
  EXPECT_FALSE(Put(lease, 0, Text(kPart + 1)));
  std::size_t at = 0;
  for (; at < protocol::kMaxResultBytes; at += kPart) ASSERT_TRUE(Put(lease, at, Text(kPart)));
  EXPECT_FALSE(Put(lease, at, "x"));
}

/// As stream.join gives it for so many images.
std::string PlanOf(std::size_t images) {
  Json table = Json::array(), names = Json::array(), stamps = Json::array();
  for (std::size_t i = 0; i < images; ++i) {
    table.push_back({{"digest", Sha256Of(StrCat(i)).Hex()},
                     {"kind", "tiff"},
                     {"height", 40'000 + i},
                     {"width", 60'000}});
    names.push_back(StrCat("centre-3/batch-17/slide-", i, ".svs"));
    stamps.push_back("1f3a5b7c.18a2b3c4d5e6f708");
  }
  const Json geometry = {{"patches_per_epoch", 10 * images},
                         {"global_batch", 64},
                         {"tail", "keep"},
                         {"world_size", 1},
                         {"shard_patches", 8},
                         {"numerics", "cpu"},
                         {"image_runs", {{10, images}}}};
  return DumpJson({{"plan", DumpJson({{"images", table}})},
                   {"manifest", {{"root", "/data/"}, {"images", names}, {"stamps", stamps}}},
                   {"geometry", geometry}});
}

TEST_F(LargeResult, ThatAnotherTaskTakesInIsFetchedByItsWorkerAlone) {
  rig.AddWorker(1);
  const std::string text = Text(kPart + 17);
  const protocol::TaskLease root = Start("noop");
  ASSERT_TRUE(Put(root, 0, text.substr(0, kPart)));
  protocol::TaskSpec next;
  next.op = "next";
  next.depends_on = {0};
  protocol::TasksFinished finished;
  finished.items.push_back({root.lease, root.task, {}, text.substr(kPart), {next}, 0, kPart});
  rig.Tell(CoreRig::kWorker0, finished);
  const auto granted = rig.Granted();
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_TRUE(granted[0].inputs.empty());
  EXPECT_EQ(granted[0].inputs_apart, std::vector<std::uint32_t>{0});
  const bool first = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr;
  const PeerId holder = first ? CoreRig::kWorker0 : CoreRig::kWorker0 + 1;
  const PeerId other = first ? CoreRig::kWorker0 + 1 : CoreRig::kWorker0;
  std::string input;
  for (int pieces = 0; pieces < 2; ++pieces) {
    rig.Tell(holder, protocol::FetchResult{{job, 0}, input.size()});
    const auto* fetched = rig.Find<protocol::ResultFetched>();
    ASSERT_NE(fetched, nullptr);
    input += fetched->result;
  }
  EXPECT_TRUE(input == text);
  rig.Tell(other, protocol::FetchResult{{job, 0}, 0});
  EXPECT_EQ(rig.Find<protocol::ResultFetched>(), nullptr) << "it holds no task that needs it";
  rig.Tell(holder, protocol::FetchResult{{job, 1}, 0});
  EXPECT_EQ(rig.Find<protocol::ResultFetched>(), nullptr) << "its task does not depend on it";
  rig.Finish(holder, granted[0]);
  rig.Tell(holder, protocol::FetchResult{{job, 0}, 0});
  EXPECT_EQ(rig.Find<protocol::ResultFetched>(), nullptr) << "the lease is over";
}

TEST_F(LargeResult, SmallInputsTravelWithTheLease) {
  protocol::TaskSpec next;
  next.op = "next";
  next.depends_on = {0};
  rig.Finish(CoreRig::kWorker0, Start("noop"), {next}, {}, "small");
  EXPECT_EQ(rig.Granted().at(0).inputs, std::vector<std::string>{"small"});
  EXPECT_TRUE(rig.Granted().at(0).inputs_apart.empty());
}

TEST_F(LargeResult, OfTheLastTaskIsThePlanOfAStream) {
  const protocol::TaskLease root = Start("stream");
  protocol::TaskSpec open, join;
  open.op = "stream.open";
  open.depends_on = {0};
  join.op = "stream.join";
  join.depends_on = {protocol::kSpawnedBase};
  rig.Finish(CoreRig::kWorker0, root, {open, join}, {}, "no plan");
  const auto opening = rig.Granted();
  ASSERT_EQ(opening.size(), 1u);
  protocol::AttachTrainer attach;
  attach.stream = job;
  attach.trainer_incarnation = 5;
  attach.endpoint.host_identity = "host";
  attach.slots.push_back({0, 1, protocol::SlotState::kFree, 0, 0, {}});
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  rig.Tell(CoreRig::kTrainer0, attach);
  ASSERT_NE(rig.Find<protocol::RequestFailed>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::RequestFailed>()->outcome.code,
            static_cast<int>(absl::StatusCode::kUnavailable));
  rig.Finish(CoreRig::kWorker0, opening[0], {}, {}, "rows");
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {}, {}, PlanOf(10));
  rig.Tell(CoreRig::kOps, protocol::FetchResult{{job, protocol::kLastTask}, 0});
  ASSERT_NE(rig.Find<protocol::ResultFetched>(), nullptr);
  EXPECT_EQ(rig.Find<protocol::ResultFetched>()->result, PlanOf(10));
  EXPECT_EQ(rig.Find<protocol::ResultFetched>()->task, (TaskId{job, 2}));
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker();
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  rig.Tell(CoreRig::kTrainer0, attach);
  EXPECT_NE(rig.Find<protocol::TrainerAttached>(), nullptr) << "the plan came from the journal";
}

TEST_F(LargeResult, AnImageThatCannotBeOpenedFailsItsStream) {
  protocol::TaskSpec open, join;
  open.op = "stream.open";
  join.op = "stream.join";
  join.depends_on = {protocol::kSpawnedBase};
  rig.Finish(CoreRig::kWorker0, Start("stream"), {open, join}, {}, "list");
  const protocol::TaskLease opening = rig.Granted().at(0);
  rig.Finish(CoreRig::kWorker0, opening, {},
             {static_cast<int>(absl::StatusCode::kDataLoss), "image 7 is damaged"});
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, protocol::JobState::kFailed);
  ASSERT_EQ(row.failed.size(), 1u);
  EXPECT_EQ(TextOf(row.failed[0].outcome), "image 7 is damaged");
}

TEST_F(LargeResult, PlanOfAHundredThousandImagesReachesTrainersAndWorkers) {
  const std::string plan = PlanOf(100'000);
  ASSERT_GT(plan.size(), 12 * kPart);
  ASSERT_LT(plan.size(), protocol::kMaxResultBytes);
  Finish(Start("stream"), plan);
  EXPECT_TRUE(Fetch() == plan);
  protocol::AttachTrainer attach;
  attach.stream = job;
  attach.trainer_incarnation = 5;
  attach.endpoint.host_identity = "host";
  attach.slots.push_back({0, 1, protocol::SlotState::kFree, 0, 0, {}});
  rig.Join(CoreRig::kTrainer0, Role::kOperator, "ops");
  rig.Tell(CoreRig::kTrainer0, attach);
  ASSERT_FALSE(rig.Shards().empty());
  std::string text, manifest;
  for (;;) {
    rig.Tell(CoreRig::kWorker0, protocol::FetchStream{job, text.size() + manifest.size()});
    const auto* described = rig.Find<protocol::StreamDescribed>();
    ASSERT_NE(described, nullptr);
    ASSERT_LE(described->plan.size() + described->manifest.size(), kPart);
    text += described->plan;
    manifest += described->manifest;
    if (text.size() + manifest.size() < described->plan_bytes + described->manifest_bytes) continue;
    EXPECT_EQ(Sha256Of(text), described->plan_digest);
    break;
  }
  const Json root = ParseJson(plan, "plan").value();
  EXPECT_TRUE(text == root["plan"].get<std::string>());
  EXPECT_TRUE(ParseJson(manifest, "manifest").value() == root["manifest"]);
  attach.endpoint.remote_address = "now there";
  rig.Tell(CoreRig::kTrainer0, attach);
  const auto* told = rig.FindFor<protocol::StreamDescribed>(CoreRig::kWorker0);
  ASSERT_NE(told, nullptr);
  EXPECT_TRUE(told->plan.empty() && told->manifest.empty()) << "it has them";
}

}  // namespace
}  // namespace patchbay::scheduler
