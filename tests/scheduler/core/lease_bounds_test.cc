// Leases at the limits of a message, of a worker and of a search.
#include <algorithm>

#include <gtest/gtest.h>

#include "runtime/wire/protocol/codec.h"
#include "tests/scheduler/core/core_rig.h"

namespace patchbay::scheduler {
namespace {

using protocol::JobState;
using protocol::kSpawnedBase;

class LeaseBounds : public testing::Test {
 protected:
  LeaseBounds() {
    rig.AddAgent();
    rig.AddWorker();
  }
  ~LeaseBounds() override { EXPECT_EQ(rig.core().CheckInvariants(), absl::OkStatus()); }

  JobId Submit(const std::string& key, const protocol::Resources& need = {},
               std::size_t manifest_bytes = 0, PeerId peer = CoreRig::kOps) {
    protocol::SubmitJob submit;
    submit.submission_key = key;
    submit.kind = "noop";
    submit.root.op = "root";
    submit.root.resources = need;
    submit.manifest.assign(manifest_bytes, 'm');
    rig.Tell(peer, submit);
    const auto* submitted = rig.Find<protocol::JobSubmitted>();
    return submitted == nullptr ? 0 : submitted->job;
  }
  void Cancel(JobId job) { rig.Tell(CoreRig::kOps, protocol::CancelJob{job}); }
  /// The op of the only task that the last call leased.
  std::string Only() const {
    const auto granted = rig.Granted();
    return granted.size() == 1 ? granted[0].op : StrCat(granted.size(), " tasks");
  }
  void FinishOnly(std::vector<protocol::TaskSpec> spawned = {}, const std::string& result = "") {
    const auto granted = rig.Granted();
    ASSERT_EQ(granted.size(), 1u);
    rig.Finish(CoreRig::kWorker0, granted[0], std::move(spawned), {}, result);
  }
  /// Leases so many tasks at once: how many each message carries.
  std::vector<std::size_t> Carried(std::size_t count, std::size_t payload_bytes) {
    protocol::TaskSpec tiny = Spec();
    tiny.payload.assign(payload_bytes, 'p');
    // The first of them shows how short they are.
    FinishOnly(std::vector<protocol::TaskSpec>(count + 1, tiny));
    return CarriedNext();
  }
  /// As Carried, of the tasks that wait while one is held.
  std::vector<std::size_t> CarriedNext() {
    FinishOnly();
    std::vector<std::size_t> carried;
    for (const SendAction& send : rig.sent()) {
      const auto* granted = std::get_if<protocol::LeasesGranted>(&send.body);
      if (granted == nullptr) continue;
      carried.push_back(granted->tasks.size());
      EXPECT_EQ(protocol::Encode({protocol::kProtocolVersion, 1, 0, send.body}).status(),
                absl::OkStatus());
    }
    return carried;
  }

  CoreRig rig;
};

constexpr std::size_t kHalfMessage = kMaxLeaseMessageBytes / 2;

TEST_F(LeaseBounds, AMessageIsFilledWithLeasesToItsLimit) {
  Submit("key", {}, kMaxManifestBytes);
  EXPECT_EQ(Carried(5, kHalfMessage - kMaxManifestBytes - 1'000),
            (std::vector<std::size_t>{2, 2, 1}));
}

TEST_F(LeaseBounds, AMessageCarriesOneLeaseWhereTwoWouldBeTooLong) {
  Submit("key", {}, kMaxManifestBytes);
  EXPECT_EQ(Carried(3, kHalfMessage - kMaxManifestBytes), (std::vector<std::size_t>{1, 1, 1}));
}

TEST_F(LeaseBounds, TheFoldersOfAKeyCountInAMessageToo) {
  const std::vector<std::string> folders(256, std::string(4'096, 'f'));
  rig.core().PeerJoined(kAnn, {Role::kSubmitter, "ann", folders, folders});
  Submit("key", {}, 0, kAnn);
  EXPECT_EQ(Carried(5, 0), (std::vector<std::size_t>{2, 2, 1}));
}

TEST_F(LeaseBounds, InputsTravelWithALeaseUpToALimit) {
  for (const std::size_t more : {0, 1}) {
    Submit(StrCat("key ", more));
    // Their duration is not known yet, so they are leased one by one.
    const std::string a = StrCat("a", more), b = StrCat("b", more), c = StrCat("c", more);
    FinishOnly({Spec(a), Spec(b), Spec(c, 0, {kSpawnedBase, kSpawnedBase + 1})});
    FinishOnly({}, std::string(kMaxLeaseInputBytes - 10, 'a'));
    FinishOnly({}, std::string(10 + more, 'b'));
    ASSERT_EQ(Only(), c);
    EXPECT_EQ(rig.Granted()[0].inputs.size(), more == 0 ? 2u : 0u);
    EXPECT_EQ(rig.Granted()[0].inputs_apart,
              more == 0 ? std::vector<std::uint32_t>{} : (std::vector<std::uint32_t>{1, 2}));
    FinishOnly();
  }
}

TEST_F(LeaseBounds, InputsThatTravelCountInAMessage) {
  Submit("key");
  std::vector<protocol::TaskSpec> spawned(8, Spec("step", 0, {kSpawnedBase}));
  spawned.insert(spawned.begin(), Spec("input"));
  FinishOnly(std::move(spawned));
  FinishOnly({}, std::string(kMaxLeaseInputBytes, 'i'));
  EXPECT_EQ(CarriedNext(), (std::vector<std::size_t>{4, 3}));
}

TEST_F(LeaseBounds, TasksAsHeavyAsThoseBeforeThemAreExpectedToTakeAsLong) {
  Submit("key");
  protocol::TaskSpec heavy = Spec();
  heavy.weight = 100;
  FinishOnly(std::vector<protocol::TaskSpec>(6, heavy));
  FinishOnly();  // in no time
  const auto five = rig.Granted();
  ASSERT_EQ(five.size(), 5u);
  rig.Pass(100);  // 20 ms each: with the first one the average is 10 ms
  protocol::TasksFinished finished;
  for (const auto& lease : five) {
    finished.items.push_back({lease.lease, lease.task, {}, "", {}, 0, 0});
  }
  finished.items.back().spawned.assign(20, heavy);
  rig.Tell(CoreRig::kWorker0, finished);
  EXPECT_EQ(rig.Granted().size(), kQueueTargetUs / 10'000);
}

TEST_F(LeaseBounds, AWorkerThatComesBackKeepsAsManyTasksAsItMayHold) {
  constexpr std::size_t kMore = 3;
  const JobId job = Submit("key");
  FinishOnly(std::vector<protocol::TaskSpec>(kMaxQueueDepth + kMore, Spec()));
  const std::uint32_t before = rig.core().incarnation();
  rig.Restart();
  ASSERT_EQ(rig.replayed(), absl::OkStatus());
  rig.AddAgent();
  std::vector<protocol::HeldLease> held;
  for (std::uint32_t i = 1; i <= kMaxQueueDepth + kMore; ++i) {
    held.push_back({{before, 1'000 + i}, false, {job, i}, 0, {}});
  }
  rig.AddWorker(0, 100, held);
  const auto* revoked = rig.FindFor<protocol::LeasesRevoked>(CoreRig::kWorker0);
  ASSERT_NE(revoked, nullptr);
  EXPECT_EQ(revoked->leases.size(), kMore);
  EXPECT_EQ(revoked->leases.front(), held[kMaxQueueDepth].lease);
  EXPECT_EQ(rig.Row(job).tasks_running, kMaxQueueDepth);
}

TEST_F(LeaseBounds, ATaskOfItsGroupIsFoundSoFarFromTheHead) {
  for (const std::size_t before : {kAffinityHead - 1, kAffinityHead}) {
    Submit(StrCat("key ", before));
    FinishOnly({Spec("first", 1)});
    std::vector<protocol::TaskSpec> spawned;
    for (std::uint32_t i = 0; i < before; ++i) spawned.push_back(Spec("cold", 2 + i));
    spawned.push_back(Spec("warm", 1));
    FinishOnly(std::move(spawned));
    EXPECT_EQ(rig.Granted().at(0).op, before < kAffinityHead ? "warm" : "cold") << before;
    while (!rig.Granted().empty()) rig.Finish(CoreRig::kWorker0, rig.Granted()[0]);
  }
}

TEST_F(LeaseBounds, TheFirstTaskIsSkippedSoOftenAndNoMore) {
  Submit("key");
  FinishOnly({Spec("first", 1)});
  std::vector<protocol::TaskSpec> spawned(2 * kMaxSkips, Spec("warm", 1));
  spawned.insert(spawned.begin(), Spec("cold", 2));
  FinishOnly(std::move(spawned));
  std::vector<std::string> order;
  for (auto granted = rig.Granted(); !granted.empty(); granted = rig.Granted()) {
    protocol::TasksFinished finished;
    for (const auto& lease : granted) {
      order.push_back(lease.op);
      finished.items.push_back({lease.lease, lease.task, {}, "", {}, 0, 0});
    }
    rig.Tell(CoreRig::kWorker0, finished);
  }
  ASSERT_EQ(order.size(), 2 * kMaxSkips + 1);
  EXPECT_EQ(std::find(order.begin(), order.end(), "cold") - order.begin(), kMaxSkips);
}

/// A need that a larger worker of the node would have room for, different from number to number.
protocol::Resources NobodyHas(std::uint32_t number) { return {1'001 + number, 0, 0}; }

TEST_F(LeaseBounds, ATaskPastTheDistinctNeedsThatItsKeyMayQueueRunsOnceThereIsRoom) {
  std::vector<JobId> jobs;
  for (std::uint32_t i = 0; i < kMaxResourceShapes; ++i) {
    jobs.push_back(Submit(StrCat("key ", i), NobodyHas(i)));
  }
  const JobId last = Submit("last");
  EXPECT_EQ(Only(), "0 tasks");
  rig.Pass(2'000);
  EXPECT_EQ(Only(), "0 tasks");
  Cancel(jobs[7]);
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, last);
}

TEST_F(LeaseBounds, NeedsOfOneKeyThatNobodyCanMeetHoldUpNoOtherKey) {
  rig.Join(kAnn, Role::kSubmitter, "ann");
  for (std::uint32_t i = 0; i < 2 * kMaxResourceShapes; ++i) {
    ASSERT_NE(Submit(StrCat("key ", i), NobodyHas(i), 0, kAnn), 0u);
  }
  const JobId other = Submit("other");
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, other);
}

TEST_F(LeaseBounds, TheLogOfAJobSaysOnceThatItWaitsForOtherNeedsOfItsKey) {
  for (std::uint32_t i = 0; i < kMaxResourceShapes; ++i) {
    Submit(StrCat("key ", i), NobodyHas(i));
  }
  const JobId last = Submit("last");
  rig.Pass(5'000);
  rig.Tell(CoreRig::kOps, protocol::FetchLogs{last, 0});
  const auto* logs = rig.Find<protocol::LogsFetched>();
  ASSERT_NE(logs, nullptr);
  ASSERT_EQ(logs->lines.size(), 2u);
  EXPECT_EQ(logs->lines[1].text,
            "tasks wait: others of key ops are ready with 64 different needs of CPUs, GPUs and "
            "memory, as many as one key may have: let them run, or cancel their jobs");
}

TEST_F(LeaseBounds, ASuspectThatNobodyHasRoomForHoldsUpNoOther) {
  rig.AddAgent(4, 1, 1);
  rig.AddGpuWorker(1);
  const JobId needs_gpu = Submit("gpu", {1'000, 1, 0});
  ASSERT_EQ(rig.Granted().size(), 1u);
  const JobId other = Submit("cpu");
  ASSERT_EQ(rig.Granted().size(), 1u);
  rig.Exited(1, 101);
  rig.Exited(0, 100);
  rig.AddWorker(0, 200);
  ASSERT_EQ(rig.Granted().size(), 1u) << "it waits behind one that needs a GPU";
  EXPECT_EQ(rig.Granted()[0].task.job, other);
  rig.AddWorker(1, 200, {}, true);
  ASSERT_EQ(rig.Granted().size(), 1u);
  EXPECT_EQ(rig.Granted()[0].task.job, needs_gpu);
}

TEST_F(LeaseBounds, CancelledJobsThatNobodyHadRoomForLeaveNothingQueued) {
  std::vector<JobId> jobs;
  for (std::uint32_t i = 0; i < kMaxResourceShapes; ++i) {
    jobs.push_back(Submit(StrCat("key ", i), NobodyHas(i)));
  }
  EXPECT_EQ(rig.core().gauges().tasks_ready, kMaxResourceShapes);
  for (const JobId job : jobs) Cancel(job);
  EXPECT_EQ(rig.core().gauges().tasks_ready, 0u);
  Submit("last");
  EXPECT_EQ(rig.Granted().size(), 1u) << "it waits behind tasks that are no more";
}

}  // namespace
}  // namespace patchbay::scheduler
