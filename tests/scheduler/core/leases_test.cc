#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policy/limits.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;

class Leased : public testing::Test {
 protected:
  void SetUp() override {
    rig.AddAgent();
    rig.AddWorker();
    job = rig.Submit("key");
    lease = rig.Granted().at(0);
  }
  void Renew(std::uint64_t progress) { rig.Renew(CoreRig::kWorker0, lease.lease, progress); }
  CoreRig rig;
  JobId job = 0;
  protocol::TaskLease lease;
};

TEST_F(Leased, ExpiresWithoutProgressAndItsWorkerIsKilled) {
  rig.Pass(9'000);
  EXPECT_EQ(rig.Find<protocol::KillWorker>(), nullptr);
  rig.Pass(2'000);
  ASSERT_NE(rig.FindFor<protocol::KillWorker>(CoreRig::kAgent), nullptr);
  EXPECT_EQ(rig.Find<protocol::KillWorker>()->worker_incarnation, 100u);
}

TEST_F(Leased, LivesWhileItsProgressMoves) {
  for (std::uint64_t progress = 1; progress < 8; ++progress) {
    rig.Pass(5'000);
    Renew(progress);
  }
  EXPECT_EQ(rig.core().gauges().leases_expired, 0u);
}

TEST_F(Leased, TasksBehindOneThatTakesLongerThanThoughtGoElsewhere) {
  const std::vector<PeerId> alive = {CoreRig::kAgent, CoreRig::kWorker0, CoreRig::kWorker0 + 1};
  protocol::TaskSpec part;
  part.op = "part";
  rig.Finish(CoreRig::kWorker0, lease, {part});
  rig.Finish(CoreRig::kWorker0, rig.Granted().at(0), {part, part, part});
  const auto held = rig.Granted();
  ASSERT_EQ(held.size(), 3u) << "its op is measured: tasks queue at the worker";
  rig.AddWorker(1);
  rig.Pass(500, alive);
  protocol::RenewLeases renewal;
  renewal.items = {{held[0].lease, 1, 400'000}, {held[1].lease, 1}, {held[2].lease, 1}};
  rig.Tell(CoreRig::kWorker0, renewal);
  rig.Pass(200, alive);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>(), nullptr) << "not for long yet";
  rig.Pass(500, alive);
  ASSERT_NE(rig.FindFor<protocol::LeasesRevoked>(CoreRig::kWorker0), nullptr);
  EXPECT_EQ(rig.Find<protocol::LeasesRevoked>()->leases,
            (std::vector<LeaseNumber>{held[1].lease, held[2].lease}));
  EXPECT_NE(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0 + 1), nullptr);
  rig.Pass(1'000, alive);
  EXPECT_EQ(rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0), nullptr);
}

TEST_F(Leased, RenewalWithoutProgressDoesNotHelp) {
  for (int i = 0; i < 3; ++i) {
    rig.Pass(4'000);
    Renew(1);
  }
  rig.Pass(4'000);
  EXPECT_EQ(rig.core().gauges().leases_expired, 1u);
}

TEST_F(Leased, FencedWorkersResultIsNotAccepted) {
  rig.Pass(11'000);
  rig.Finish(CoreRig::kWorker0, lease);
  EXPECT_EQ(rig.Row(job).tasks_done, 0u);
}

TEST_F(Leased, DeadWorkersTaskGoesToAnother) {
  rig.AddWorker(1);
  rig.Exited(0, 100);
  const auto granted = rig.Granted();
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].task, lease.task);
  EXPECT_GT(granted[0].lease, lease.lease);
}

TEST_F(Leased, ThreeSoloDeathsQuarantineTheTask) {
  for (std::uint64_t life = 0; life < 3; ++life) {
    EXPECT_EQ(rig.Row(job).state, JobState::kRunning);
    rig.Exited(0, 100 + 10 * life);
    rig.AddWorker(0, 110 + 10 * life);
  }
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, JobState::kFailed);
  ASSERT_EQ(row.failed.size(), 1u);
}

TEST_F(Leased, ATaskWhoseWorkersAreKilledFromOutsideIsGivenUpMuchLater) {
  for (std::uint64_t life = 0; life < kMaxSoloEnds; ++life) {
    ASSERT_EQ(rig.Row(job).state, JobState::kRunning) << "after " << life << " kills";
    rig.Exited(0, 100 + 10 * life, SIGKILL);
    rig.AddWorker(0, 110 + 10 * life);
  }
  const protocol::JobRow row = rig.Row(job);
  EXPECT_EQ(row.state, JobState::kFailed);
  ASSERT_EQ(row.failed.size(), 1u);
  EXPECT_THAT(TextOf(row.failed[0].outcome), testing::HasSubstr("ended 12 workers"));
}

TEST_F(Leased, AmongOthersACrashOnlyMakesSuspectsThatRunAlone) {
  rig.Finish(CoreRig::kWorker0, lease, std::vector<protocol::TaskSpec>(40, Spec("tiny", 1)));
  for (int i = 0; i < 5 && rig.Granted().size() == 1; ++i)
    rig.Finish(CoreRig::kWorker0, rig.Granted()[0]);
  ASSERT_GT(rig.Granted().size(), 3u);
  rig.Exited(0, 100);
  rig.AddWorker(0, 200);
  EXPECT_EQ(rig.Granted().size(), 1u) << "suspects run alone";
  EXPECT_TRUE(rig.core().CheckInvariants().ok());
}

TEST_F(Leased, SilentAgentsWorkersGetNothingMore) {
  rig.Finish(CoreRig::kWorker0, lease);
  rig.Pass(4'000, {});
  rig.Submit("second");
  EXPECT_TRUE(rig.Granted().empty());
  rig.Pass(600);
  EXPECT_EQ(rig.Granted().size(), 1u);
}

TEST_F(Leased, RegistrationOfADeadProcessIsRefused) {
  rig.Exited(0, 100);
  rig.AddWorker(0, 100);
  EXPECT_NE(rig.FindFor<protocol::RequestFailed>(CoreRig::kWorker0), nullptr);
}

TEST_F(Leased, AWorkerThatOutlivesItsNodesSilenceIsKilled) {
  rig.Pass(61'000, {});
  rig.AddWorker(0, 100);
  EXPECT_NE(rig.FindFor<protocol::RequestFailed>(CoreRig::kWorker0), nullptr);
  EXPECT_EQ(rig.Find<protocol::KillWorker>(), nullptr) << "its agent is not back yet";
  rig.AddAgent();
  rig.AddWorker(0, 100);
  EXPECT_NE(rig.FindFor<protocol::RequestFailed>(CoreRig::kWorker0), nullptr);
  const auto* kill = rig.FindFor<protocol::KillWorker>(CoreRig::kAgent);
  ASSERT_NE(kill, nullptr);
  EXPECT_EQ(kill->index, 0u);
  EXPECT_EQ(kill->worker_incarnation, 100u);
  rig.Exited(0, 100);
  rig.AddWorker(0, 101);
  EXPECT_EQ(rig.Granted().size(), 1u);
}

TEST_F(Leased, DrainIsAnsweredWhenNothingIsHeld) {
  rig.Tell(CoreRig::kAgent, protocol::Drain{}, 55);
  EXPECT_EQ(rig.Find<protocol::Drained>(), nullptr);
  rig.Finish(CoreRig::kWorker0, lease, {Spec("more", 1)});
  EXPECT_NE(rig.Find<protocol::Drained>(), nullptr);
  EXPECT_TRUE(rig.Granted().empty());
}

TEST_F(Leased, RestartGivesNothingAwayTwiceWhileItsWorkerMayLive) {
  rig.Restart();
  ASSERT_TRUE(rig.replayed().ok());
  rig.AddAgent();
  rig.AddWorker(1);
  rig.Pass(2'900, {CoreRig::kAgent, CoreRig::kWorker0 + 1});
  EXPECT_TRUE(rig.Granted().empty()) << "it may be on its way back";
  rig.Pass(200, {CoreRig::kAgent, CoreRig::kWorker0 + 1});
  EXPECT_EQ(rig.Granted().size(), 1u);
}

TEST_F(Leased, RestartWaitsForNobodyOnceAllWorkersAreAccountedFor) {
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker(0, 100, {{lease.lease, false, lease.task, 0, {}}});
  rig.Pass(200);
  EXPECT_TRUE(rig.Granted().empty()) << "it goes on under its old number";
  rig.Finish(CoreRig::kWorker0, lease);
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
}

TEST_F(Leased, ATaskOfAFormerIncarnationDoesNotJoinASuspect) {
  rig.AddWorker(1);
  rig.Submit("second");
  const protocol::TaskLease other = rig.Granted().at(0);
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker(0);
  rig.AddWorker(1);
  rig.Pass(200);
  ASSERT_EQ(rig.Granted().size(), 2u);
  rig.Exited(0, 100);
  rig.Exited(1, 101);
  rig.AddWorker(1, 200);
  ASSERT_EQ(rig.Granted().size(), 1u) << "suspects run alone";
  const protocol::TaskLease& late = rig.Granted()[0].task == lease.task ? other : lease;
  rig.AddWorker(1, 200, {{late.lease, false, late.task, 0, {}}});
  const auto* revoked = rig.FindFor<protocol::LeasesRevoked>(CoreRig::kWorker0 + 1);
  ASSERT_NE(revoked, nullptr);
  EXPECT_EQ(revoked->leases, std::vector<LeaseNumber>{late.lease});
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

TEST_F(Leased, ResultOfAFormerIncarnationIsAccepted) {
  rig.Restart();
  rig.AddAgent();
  rig.AddWorker(0, 100);
  rig.Finish(CoreRig::kWorker0, lease);
  EXPECT_EQ(rig.Row(job).state, JobState::kDone);
}

TEST_F(Leased, IncarnationRisesWithEveryStart) {
  const std::uint32_t before = rig.core().incarnation();
  rig.Restart();
  EXPECT_EQ(rig.core().incarnation(), before + 1);
}

TEST_F(Leased, ReplayedStateHasTheHashOfTheLiveOne) {
  rig.Finish(CoreRig::kWorker0, lease, {Spec("a", 1), Spec("b", 2)});
  Core replay;
  for (const JournalRecord& record : rig.disk()) {
    ASSERT_TRUE(replay.Replay(record.sequence, record.bytes).ok());
  }
  EXPECT_EQ(replay.DurableStateHash(), rig.core().DurableStateHash());
  Core loaded;
  ASSERT_TRUE(loaded.LoadSnapshot(rig.core().last_sequence(), rig.core().EncodeSnapshot()).ok());
  EXPECT_EQ(loaded.DurableStateHash(), rig.core().DurableStateHash());
}

TEST(Workers, ThatEndedBeforeTheyWereHeardOfAreNotTakenIn) {
  CoreRig rig;
  rig.AddAgent();
  rig.Exited(3, 103);
  EXPECT_NE(rig.Find<protocol::WorkerExitSeen>(), nullptr);
  rig.AddWorker(3);
  const auto* refused = rig.FindFor<protocol::RequestFailed>(CoreRig::kWorker0 + 3);
  ASSERT_NE(refused, nullptr) << "its registration came late";
  EXPECT_EQ(refused->outcome.code, static_cast<int>(absl::StatusCode::kAborted));
}

TEST(Workers, AreToldOfNothingThatIsNotDurable) {
  CoreRig rig(false);
  rig.Sync();
  rig.AddAgent();
  rig.AddWorker();
  EXPECT_EQ(rig.Find<protocol::WorkerRegistered>(), nullptr);
  rig.Sync();
  EXPECT_NE(rig.Find<protocol::WorkerRegistered>(), nullptr);
  rig.Exited(0, 100);
  EXPECT_EQ(rig.Find<protocol::WorkerExitSeen>(), nullptr);
  rig.Sync();
  EXPECT_NE(rig.Find<protocol::WorkerExitSeen>(), nullptr);
}

TEST(Unheard, AWorkerWithoutConnectionOccupiesItsNodeAfterItsTaskIsCancelled) {
  CoreRig rig;
  rig.AddAgent(1);
  rig.AddWorker(0);
  rig.AddWorker(1);
  const JobId first = rig.Submit("first");
  ASSERT_EQ(rig.Granted().size(), 1u);
  const protocol::TaskLease lease = rig.Granted()[0];
  const PeerId holder = rig.FindFor<protocol::LeasesGranted>(CoreRig::kWorker0) != nullptr
                            ? CoreRig::kWorker0
                            : CoreRig::kWorker0 + 1;
  Actions gone;
  rig.core().PeerGone(holder, {1000, 0}, gone);
  rig.Tell(CoreRig::kOps, protocol::CancelJob{first});
  rig.Submit("second");
  rig.Pass(1000);
  EXPECT_TRUE(rig.Granted().empty()) << "the first task may still run";
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
  const auto index = static_cast<std::uint32_t>(holder - CoreRig::kWorker0);
  rig.AddWorker(index, 100, {{lease.lease, false, lease.task, 0, {}}});
  EXPECT_NE(rig.FindFor<protocol::LeasesRevoked>(holder), nullptr);
  EXPECT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus());
}

}  // namespace
}  // namespace patchbay::scheduler
