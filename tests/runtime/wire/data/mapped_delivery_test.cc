// Mapped delivery between real processes: valid shards arrive, and invalid ones never do, whatever
// the worker does.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "gtest/gtest.h"
#include "runtime/wire/data/mapped_ring.h"
#include "runtime/wire/data/ring_server.h"
#include "runtime/wire/data/sockets.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

/// Collects the server's answers to fences.
class FenceLog {
 public:
  void Add(const FenceOutcome& outcome) {
    const std::lock_guard lock(mu_);
    outcomes_.push_back(outcome);
    changed_.notify_all();
  }
  /// The next outcome, or nullopt when none comes.
  std::optional<FenceOutcome> Wait() {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, std::chrono::milliseconds(kPatience),
                           [this] { return !outcomes_.empty(); })) {
      return std::nullopt;
    }
    const FenceOutcome first = outcomes_.front();
    outcomes_.erase(outcomes_.begin());
    return first;
  }
  bool Empty() {
    const std::lock_guard lock(mu_);
    return outcomes_.empty();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<FenceOutcome> outcomes_;
};

struct Trainer {
  explicit Trainer(std::int64_t proof_deadline_ms = kPatience,
                   const SlotTableOptions& options = SmallOptions(),
                   ExitProof proof = ExitProof::kPidfd,
                   std::function<bool(pid_t, std::int64_t)> left_device = nullptr,
                   std::size_t peers_max = kMaxPeers) {
    ring = MakeRing(options);
    RingServer::Options o;
    o.proof = proof;
    o.left_device = std::move(left_device);
    o.peers_max = peers_max;
    o.secret = SecretOf(1);
    o.stream = kStream;
    o.proof_deadline_ms = proof_deadline_ms;
    o.fenced = [this](const FenceOutcome& outcome) { fences.Add(outcome); };
    auto started = RingServer::Start(*ring, o);
    EXPECT_TRUE(started.ok()) << started.status();
    server = std::move(*started);
  }
  FenceRequest Request(const ShardHeader& h, pid_t pid) const {
    return FenceRequest{h.shard, h.lease, pid, h.grant};
  }
  FenceLog fences;
  std::unique_ptr<Ring> ring;
  std::unique_ptr<RingServer> server;
};

MappedRing::Options WorkerOptions(const std::string& name, std::uint8_t secret = 1) {
  MappedRing::Options o;
  o.socket_name = name;
  o.secret = SecretOf(secret);
  o.stream = kStream;
  o.layout = SmallLayout();
  o.capacity = Capacity(SmallGeometry());
  return o;
}

/// Connects without a greeting: does the trainer challenge it, or end the connection at once?
bool IsChallenged(const std::string& name, UniqueFd* socket = nullptr) {
  auto connected = ConnectAbstract(name, kPatience);
  if (!connected.ok()) return false;
  std::array<std::byte, kMaxGreetingBytes> buffer;
  const auto size = ReceiveMessage(connected->get(), buffer);
  if (socket != nullptr) *socket = std::move(*connected);
  return size.ok() && *size > 0;
}

/// Writes `value` into the header's range and reports it.
void Deliver(MappedRing& ring, const ShardHeader& header, std::byte value) {
  const auto window = ring.Window(header.grant);
  ASSERT_TRUE(window.ok()) << window.status();
  FillAll(*window, value);
  ASSERT_TRUE(ring.ReportShardFinished(header).ok());
}

/// The child's version: connects, says 'c', then for each header told: fills with 0x40 + shard,
/// reports, says 'r'.
int RunWorker(int in, int out) {
  const std::string name = AwaitText(in);
  auto ring = MappedRing::Connect(WorkerOptions(name));
  if (!ring.ok()) return 3;
  Say(out, 'c');
  for (;;) {
    const auto header = Await<ShardHeader>(in);
    const auto window = (*ring)->Window(header.grant);
    if (!window.ok()) return 4;
    FillAll(*window, static_cast<std::byte>(0x40 + header.shard.shard));
    if (!(*ring)->ReportShardFinished(header).ok()) return 5;
    Say(out, 'r');
  }
}

/// Writes its range and then stays, stopped or not, without ever reporting; writes again each time
/// it is told.
int RunZombie(int in, int out) {
  const std::string name = AwaitText(in);
  auto ring = MappedRing::Connect(WorkerOptions(name));
  if (!ring.ok()) return 3;
  const auto header = Await<ShardHeader>(in);
  const auto window = (*ring)->Window(header.grant);
  for (;;) {
    FillAll(*window, std::byte{0xEE});
    Say(out, 'w');
    Await<char>(in);
  }
}

TEST(MappedDelivery, BringsABatchFromAnotherProcessInOrder) {
  ChildProcess worker(&RunWorker);
  Trainer trainer;
  worker.TellText(trainer.server->socket_name());
  ASSERT_EQ(worker.Hear(), 'c');
  worker.Tell(HeaderOf({0, 1}, 0, 1, 1, 3));
  worker.Tell(HeaderOf({0, 0}, 1, 0, 1, 2));
  worker.Tell(HeaderOf({0, 0}, 0, 0, 1, 1));
  const auto batch = trainer.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->at, (Position{0, 0}));
  EXPECT_EQ(batch->patches, 4u);
  EXPECT_EQ(batch->size_bytes, 4 * SmallLayout().PatchBytes());
  EXPECT_TRUE(PatchesAre(*batch, 0, 2, 0x40));
  EXPECT_TRUE(PatchesAre(*batch, 2, 2, 0x41));
  EXPECT_EQ(trainer.ring->stats().bytes_counted % (2 * SmallLayout().PatchBytes()), 0u);
}

TEST(MappedDelivery, AddsUpWhatShardsTookThatCounted) {
  Trainer trainer;
  auto ring = MappedRing::Connect(WorkerOptions(trainer.server->socket_name()));
  ASSERT_TRUE(ring.ok()) << ring.status();
  ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1), second = HeaderOf({0, 0}, 1, 0, 1, 2);
  first.times = {1, 20, 300, 0};
  second.times = {5, 60, 700, 0};
  Deliver(**ring, first, std::byte{1});
  Deliver(**ring, first, std::byte{1});  // counts once
  Deliver(**ring, second, std::byte{2});
  ASSERT_TRUE(trainer.ring->Next(kPatience).ok());
  EXPECT_EQ(trainer.ring->stats().stages, (StageTotals{6, 80, 1000, 0, 4}));
}

TEST(MappedDelivery, RefusesAPeerWithoutTheSecret) {
  Trainer trainer;
  const auto ring = MappedRing::Connect(WorkerOptions(trainer.server->socket_name(), 2));
  EXPECT_TRUE(absl::IsPermissionDenied(ring.status())) << ring.status();
  EXPECT_EQ(trainer.server->Holders().size(), 0u);
}

TEST(MappedDelivery, AWorkerRefusesATrainerWithoutTheSecret) {
  std::string name;
  auto listener = ListenAbstract("patchbay-impostor", &name);
  ASSERT_TRUE(listener.ok());
  ChildProcess impostor([&listener](int, int) {
    fcntl(listener->get(), F_SETFL, 0);
    UniqueFd socket(accept(listener->get(), nullptr, nullptr));
    Challenge challenge;
    if (!SendMessage(socket.get(), EncodeChallenge(challenge)).ok()) return 1;
    std::array<std::byte, kMaxGreetingBytes> buffer;
    if (!ReceiveMessage(socket.get(), buffer).ok()) return 2;
    RingOffer offer;
    offer.slots = 4;
    offer.host_stride = 4096;
    UniqueFd zero(open("/dev/zero", O_RDWR));
    SendMessage(socket.get(), EncodeRingOffer(offer, Nonce{}, SecretOf(9)), zero.get())
        .IgnoreError();
    return 0;
  });
  const auto ring = MappedRing::Connect(WorkerOptions(name));
  EXPECT_TRUE(absl::IsPermissionDenied(ring.status())) << ring.status();
}

TEST(MappedDelivery, RefusesAnotherStream) {
  Trainer trainer;
  auto options = WorkerOptions(trainer.server->socket_name());
  options.stream = kStream + 1;
  EXPECT_FALSE(MappedRing::Connect(options).ok());
}

TEST(MappedDelivery, RefusesAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ChildProcess stranger([](int in, int) {
    const std::string name = AwaitText(in);
    if (setuid(65534) != 0) return 9;
    auto options = WorkerOptions(name);
    auto socket = ConnectAbstract(name, 2'000);
    if (!socket.ok()) return 8;
    std::array<std::byte, kMaxGreetingBytes> buffer;
    const auto got = ReceiveMessage(socket->get(), buffer);
    return !got.ok() || *got == 0 ? 0 : 7;  // closed before it was even challenged
  });
  Trainer trainer;
  stranger.TellText(trainer.server->socket_name());
  EXPECT_EQ(stranger.Join(), 0);
}

TEST(MappedDelivery, SaysThatATrainerIsNotThere) {
  const auto ring = MappedRing::Connect(WorkerOptions("patchbay-ring-nobody"));
  EXPECT_TRUE(absl::IsUnavailable(ring.status())) << ring.status();
}

TEST(MappedDelivery, GarbageClosesOneConnectionAndHarmsNoOther) {
  Trainer trainer;
  auto good = MappedRing::Connect(WorkerOptions(trainer.server->socket_name()));
  ASSERT_TRUE(good.ok()) << good.status();
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{7}, std::size_t{8}, kShardHeaderBytes - 1, kShardHeaderBytes,
        std::size_t{512}, std::size_t{5000}}) {
    auto socket = ConnectAbstract(trainer.server->socket_name(), 2'000);
    ASSERT_TRUE(socket.ok());
    std::array<std::byte, kMaxGreetingBytes> buffer;
    ASSERT_TRUE(ReceiveMessage(socket->get(), buffer).ok());  // the challenge
    const std::vector<std::byte> garbage(size, std::byte{0x5A});
    ASSERT_TRUE(SendMessage(socket->get(), garbage).ok());
    const auto answer = ReceiveMessage(socket->get(), buffer);
    EXPECT_TRUE(!answer.ok() || *answer == 0) << "size " << size;
  }
  Deliver(**good, HeaderOf({0, 0}, 0, 0, 1, 1), std::byte{1});
  Deliver(**good, HeaderOf({0, 0}, 1, 0, 1, 2), std::byte{2});
  EXPECT_TRUE(trainer.ring->Next(kPatience).ok());
}

TEST(MappedDelivery, AForgedReportOfAnAdmittedWorkerEndsItsConnection) {
  Trainer trainer;
  auto socket = ConnectAbstract(trainer.server->socket_name(), 2'000);
  ASSERT_TRUE(socket.ok());
  std::array<std::byte, kMaxGreetingBytes> buffer;
  auto size = ReceiveMessage(socket->get(), buffer);
  ASSERT_TRUE(size.ok());
  const auto challenge = DecodeChallenge(std::span(buffer).first(*size));
  ASSERT_TRUE(challenge.ok());
  const Hello hello{kStream, Nonce{}};
  ASSERT_TRUE(SendMessage(socket->get(), EncodeHello(hello, challenge->nonce, SecretOf(1))).ok());
  size = ReceiveMessage(socket->get(), buffer);
  ASSERT_TRUE(size.ok());
  ASSERT_TRUE(DecodeRingOffer(std::span(buffer).first(*size), hello.nonce, SecretOf(1)).ok());
  std::array<std::byte, kShardHeaderBytes> forged;
  EncodeShardHeader(HeaderOf({0, 0}, 0, 0, 1, 1), SecretOf(9), forged);
  ASSERT_TRUE(SendMessage(socket->get(), forged).ok());
  const auto answer = ReceiveMessage(socket->get(), buffer);
  EXPECT_TRUE(!answer.ok() || *answer == 0);
  EXPECT_EQ(trainer.ring->stats().shards_counted, 0u);
}

TEST(MappedDelivery, TakesSoManyWorkersAndNoMore) {
  Trainer trainer(kPatience, SmallOptions(), ExitProof::kPidfd, nullptr, 2);
  const std::string& name = trainer.server->socket_name();
  UniqueFd first, second, third;
  EXPECT_TRUE(IsChallenged(name, &first));
  EXPECT_TRUE(IsChallenged(name, &second));
  EXPECT_FALSE(IsChallenged(name, &third));
  first.Close();
  EXPECT_TRUE(Comes("place of a worker that is gone", [&] { return IsChallenged(name, &third); }));
  EXPECT_EQ(RingServer::Options().peers_max, 1024u);
}

TEST(MappedDelivery, WindowsStayInsideTheRing) {
  Trainer trainer;
  auto ring = MappedRing::Connect(WorkerOptions(trainer.server->socket_name()));
  ASSERT_TRUE(ring.ok());
  EXPECT_TRUE((*ring)->Window(Grant{3, 1, 0, 4}).ok());
  EXPECT_FALSE((*ring)->Window(Grant{4, 1, 0, 1}).ok());
  EXPECT_FALSE((*ring)->Window(Grant{0, 1, 0, 5}).ok());
  EXPECT_FALSE((*ring)->Window(Grant{0, 1, 4, 1}).ok());
  EXPECT_FALSE((*ring)->Window(Grant{0, 1, ~0u, 2}).ok());
}

TEST(MappedDelivery, AWorkerRefusesARingThatIsLaidOutOtherwise) {
  Trainer trainer;
  const auto refused = [&](auto change) {
    MappedRing::Options options = WorkerOptions(trainer.server->socket_name());
    change(options);
    return absl::IsFailedPrecondition(MappedRing::Connect(options).status());
  };
  EXPECT_TRUE(refused([](auto& o) { o.capacity = 3; }));
  EXPECT_TRUE(refused([](auto& o) { o.layout.arrays.pop_back(); }));
  EXPECT_TRUE(refused([](auto& o) { o.layout.arrays[1].name = "label"; }))
      << "the same bytes, but other arrays";
  EXPECT_TRUE(refused([](auto& o) { std::swap(o.layout.arrays[0], o.layout.arrays[1]); }));
  EXPECT_FALSE(refused([](auto&) {}));
}

TEST(MappedDelivery, AWorkerRefusesARingOfAnotherCapacityWhoseSlotsAreAsLong) {
  const BatchLayout tiny = SmallLayout(16);
  const std::unique_ptr<Ring> ring = MakeRing(SmallOptions(), tiny);
  RingServer::Options served;
  served.secret = SecretOf(1);
  served.stream = kStream;
  const auto server = RingServer::Start(*ring, served);
  ASSERT_TRUE(server.ok()) << server.status();
  MappedRing::Options options = WorkerOptions((*server)->socket_name());
  options.layout = tiny;
  EXPECT_TRUE(MappedRing::Connect(options).ok());
  ++options.capacity;
  EXPECT_TRUE(absl::IsFailedPrecondition(MappedRing::Connect(options).status()));
}

TEST(MappedDelivery, DeadGrantsDuplicatesAndOversizedGrantsDoNotCount) {
  Trainer trainer;
  auto ring = MappedRing::Connect(WorkerOptions(trainer.server->socket_name()));
  ASSERT_TRUE(ring.ok());
  ShardHeader oversized = HeaderOf({0, 0}, 0, 0, 1, 1);
  oversized.grant.count = 4;
  ASSERT_TRUE((*ring)->ReportShardFinished(oversized).ok());
  ShardHeader few_arrays = HeaderOf({0, 0}, 0, 0, 1, 1), one_array = few_arrays;
  few_arrays.arrays = 1;
  one_array.array = 0;
  ASSERT_TRUE((*ring)->ReportShardFinished(few_arrays).ok());
  ASSERT_TRUE((*ring)->ReportShardFinished(one_array).ok());
  ASSERT_TRUE((*ring)->ReportShardFinished(HeaderOf({0, 0}, 0, 0, 9, 2)).ok());
  Deliver(**ring, HeaderOf({0, 0}, 0, 0, 1, 3), std::byte{1});
  ASSERT_TRUE((*ring)->ReportShardFinished(HeaderOf({0, 0}, 0, 0, 1, 3)).ok());
  ASSERT_TRUE((*ring)->ReportShardFinished(HeaderOf({0, 0}, 0, 0, 1, 4)).ok());
  Deliver(**ring, HeaderOf({0, 0}, 1, 0, 1, 5), std::byte{2});
  ASSERT_TRUE(trainer.ring->Next(kPatience).ok());
  EXPECT_EQ(trainer.ring->stats().shards_counted, 2u);
  EXPECT_EQ(trainer.ring->stats().shards_refused, 6u);
  EXPECT_FALSE((*ring)->Closed()) << "a refused shard is normal operation";
}

/// On every kind of proof: kernels before 5.3 have the second only.
class Fencing : public ::testing::TestWithParam<ExitProof> {};
INSTANTIATE_TEST_SUITE_P(Proof, Fencing, ::testing::Values(ExitProof::kPidfd, ExitProof::kFolder),
                         [](const auto& proof) {
                           return proof.param == ExitProof::kPidfd ? "Pidfd" : "Folder";
                         });

TEST_P(Fencing, TheDeathOfTheWorkerIsTheProof) {
  ChildProcess zombie(&RunZombie);
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  zombie.TellText(trainer.server->socket_name());
  const ShardHeader lost = HeaderOf({0, 0}, 0, 0, 1, 1);
  zombie.Tell(lost);
  ASSERT_EQ(zombie.Hear(), 'w');
  zombie.Stop();
  trainer.server->Fence(trainer.Request(lost, zombie.pid()));
  EXPECT_TRUE(trainer.fences.Empty()) << "a stopped process is no proof";
  zombie.Kill();
  const auto outcome = trainer.fences.Wait();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->status.ok());
  EXPECT_FALSE(outcome->already_counted);
  EXPECT_EQ(outcome->row.slot, 0u) << "with proof the range stays where it is";

  auto next_worker = MappedRing::Connect(WorkerOptions(trainer.server->socket_name()));
  ASSERT_TRUE(next_worker.ok());
  Deliver(**next_worker, HeaderOf({0, 0}, 0, 0, 1, 2), std::byte{1});
  Deliver(**next_worker, HeaderOf({0, 0}, 1, 0, 1, 3), std::byte{1});
  const auto batch = trainer.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(AllPatchesAre(*batch, 1));
}

TEST_P(Fencing, AFrozenWorkerThatWakesNeverTouchesALiveSlot) {
  ChildProcess zombie(&RunZombie);
  Trainer trainer(50, SmallOptions(), GetParam());
  auto good = MappedRing::Connect(WorkerOptions(trainer.server->socket_name()));
  ASSERT_TRUE(good.ok());
  zombie.TellText(trainer.server->socket_name());
  const ShardHeader lost = HeaderOf({0, 0}, 0, 0, 1, 1);
  zombie.Tell(lost);
  ASSERT_EQ(zombie.Hear(), 'w');
  Deliver(**good, HeaderOf({0, 0}, 1, 0, 1, 2), std::byte{7});
  zombie.Stop();
  trainer.server->Fence(trainer.Request(lost, zombie.pid()));
  const auto outcome = trainer.fences.Wait();
  ASSERT_TRUE(outcome.has_value());
  ASSERT_TRUE(outcome->status.ok()) << outcome->status;
  ASSERT_EQ(outcome->row.slot, 3u) << "the batch moved to the spare";
  EXPECT_EQ(outcome->row.counted, std::vector<std::uint32_t>{1});

  Deliver(**good, HeaderOf({0, 0}, 0, 3, outcome->row.generation, 9), std::byte{7});
  const auto batch = trainer.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(AllPatchesAre(*batch, 7));

  zombie.Continue();
  zombie.Tell('x');
  ASSERT_EQ(zombie.Hear(), 'w');  // it wrote its old range again
  EXPECT_TRUE(AllPatchesAre(*batch, 7));
  EXPECT_EQ(trainer.ring->ReportAll()[0].phase, SlotPhase::kResting);
  zombie.Kill();
  ASSERT_TRUE(Comes("end of the slot's rest",
                    [&] { return trainer.ring->ReportAll()[0].phase != SlotPhase::kResting; }));
  EXPECT_EQ(trainer.ring->ReportAll()[0].phase, SlotPhase::kSpare);
}

TEST_P(Fencing, ReportsOfAFencedLeaseAreRefused) {
  ChildProcess worker(&RunWorker);
  Trainer trainer(10, SmallOptions(), GetParam());
  worker.TellText(trainer.server->socket_name());
  ASSERT_EQ(worker.Hear(), 'c');
  const ShardHeader lost = HeaderOf({0, 0}, 0, 0, 1, 1);
  trainer.server->Fence(trainer.Request(lost, worker.pid()));
  worker.Tell(lost);
  ASSERT_EQ(worker.Hear(), 'r');
  ASSERT_TRUE(trainer.fences.Wait().has_value());
  ASSERT_TRUE(Comes("refused shard", [&] { return trainer.ring->stats().shards_refused > 0; }));
  EXPECT_EQ(trainer.ring->stats().shards_counted, 0u);
}

TEST_P(Fencing, AnswersAtOnceForAShardThatHadCounted) {
  ChildProcess worker(&RunWorker);
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  worker.TellText(trainer.server->socket_name());
  ASSERT_EQ(worker.Hear(), 'c');
  const ShardHeader done = HeaderOf({0, 0}, 0, 0, 1, 1);
  worker.Tell(done);
  ASSERT_TRUE(Comes("counted shard", [&] { return trainer.ring->stats().shards_counted > 0; }));
  trainer.server->Fence(trainer.Request(done, worker.pid()));
  const auto outcome = trainer.fences.Wait();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->already_counted);
}

TEST_P(Fencing, AProcessFencedBeforeItConnectedNeverGetsTheRing) {
  ChildProcess late(&RunWorker);
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), late.pid()));
  const auto outcome = trainer.fences.Wait();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->status.ok());
  late.TellText(trainer.server->socket_name());
  EXPECT_EQ(late.Join(), 3);
}

TEST_P(Fencing, AProcessFencedUnderAFormerSchedulersLeaseGetsTheRingFromThisOne) {
  ChildProcess late([](int in, int out) {
    const std::string name = AwaitText(in);
    for (char tries = 0; tries < 2; ++tries) {
      MappedRing::Options connect = WorkerOptions(name);
      connect.incarnation = 2;
      const auto ring = MappedRing::Connect(connect);
      Say(out, ring.ok() ? 'c' : 'r');
      Await<char>(in);
    }
    return 0;
  });
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  ShardHeader former = HeaderOf({0, 0}, 0, 0, 1, 1);
  former.lease.incarnation = 1;
  trainer.server->Fence(trainer.Request(former, late.pid()));
  ASSERT_TRUE(trainer.fences.Wait().has_value());
  late.TellText(trainer.server->socket_name());
  EXPECT_EQ(late.Hear(), 'r');
  trainer.server->AdmitSince(2);
  late.Tell('x');
  EXPECT_EQ(late.Hear(), 'c');
  late.Tell('x');
  EXPECT_EQ(late.Join(), 0);
}

TEST_P(Fencing, AProcessFencedBeforeItConnectedIsNotEvenChallenged) {
  ChildProcess late([](int in, int) { return IsChallenged(AwaitText(in)) ? 7 : 0; });
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), late.pid()));
  ASSERT_TRUE(trainer.fences.Wait().has_value());
  late.TellText(trainer.server->socket_name());
  EXPECT_EQ(late.Join(), 0);
}

TEST_P(Fencing, AProcessFencedBetweenChallengeAndProofNeverGetsTheRing) {
  ChildProcess slow([](int in, int out) {
    auto socket = ConnectAbstract(AwaitText(in), kPatience);
    if (!socket.ok()) return 3;
    std::array<std::byte, kMaxGreetingBytes> buffer;
    auto size = ReceiveMessage(socket->get(), buffer);
    if (!size.ok()) return 4;
    const auto challenge = DecodeChallenge(std::span(buffer).first(*size));
    if (!challenge.ok()) return 5;
    Say(out, 'c');
    Await<char>(in);
    const auto hello = EncodeHello({kStream, Nonce{}}, challenge->nonce, SecretOf(1));
    if (!SendMessage(socket->get(), hello).ok()) return 6;
    size = ReceiveMessage(socket->get(), buffer);
    return size.ok() && *size > 0 ? 7 : 0;
  });
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  slow.TellText(trainer.server->socket_name());
  ASSERT_EQ(slow.Hear(), 'c');
  trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), slow.pid()));
  ASSERT_TRUE(trainer.fences.Wait().has_value());
  slow.Tell('x');
  EXPECT_EQ(slow.Join(), 0);
}

TEST_P(Fencing, MoreFencedProcessesThanItRemembersShutTheRing) {
  ChildProcess first(&RunWorker), second(&RunWorker), forgotten(&RunWorker);
  Trainer trainer(kPatience, SmallOptions(), GetParam(), nullptr, 2);
  const std::string& name = trainer.server->socket_name();
  const auto fence = [&](const ChildProcess& process) {
    trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), process.pid()));
    return trainer.fences.Wait().has_value();
  };
  ASSERT_TRUE(fence(first));
  ASSERT_TRUE(fence(second));
  EXPECT_TRUE(IsChallenged(name)) << "two are remembered: others may come";
  ASSERT_TRUE(fence(forgotten));
  EXPECT_FALSE(IsChallenged(name));
  for (ChildProcess* process : {&first, &second, &forgotten}) {
    process->TellText(name);
    EXPECT_EQ(process->Join(), 3);
  }
}

TEST_P(Fencing, AProcessThatCannotBeWatchedIsKeptOutAllTheSame) {
  ChildProcess late(&RunWorker), other(&RunWorker);
  Trainer trainer(kPatience, SmallOptions(), GetParam());
  trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), other.pid()));
  ASSERT_TRUE(trainer.fences.Wait().has_value());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none_left{3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), late.pid()));
  const bool fenced = trainer.fences.Wait().has_value();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(fenced);
  EXPECT_TRUE(IsChallenged(trainer.server->socket_name())) << "others may come";
  late.TellText(trainer.server->socket_name());
  EXPECT_EQ(late.Join(), 3);
}

TEST_P(Fencing, NamesTheProcessWhenSparesRunOut) {
  ChildProcess first(&RunZombie), second(&RunZombie);
  Trainer trainer(10, SmallOptions(), GetParam());
  const ShardHeader a = HeaderOf({0, 0}, 0, 0, 1, 1), b = HeaderOf({0, 1}, 0, 1, 1, 2);
  first.TellText(trainer.server->socket_name());
  first.Tell(a);
  second.TellText(trainer.server->socket_name());
  second.Tell(b);
  ASSERT_EQ(first.Hear(), 'w');
  ASSERT_EQ(second.Hear(), 'w');
  trainer.server->Fence(trainer.Request(a, first.pid()));
  ASSERT_TRUE(trainer.fences.Wait()->status.ok());
  trainer.server->Fence(trainer.Request(b, second.pid()));
  const auto outcome = trainer.fences.Wait();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(outcome->status));
  EXPECT_NE(MessageOf(outcome->status).find(StrCat(second.pid())), std::string_view::npos)
      << outcome->status;
}

TEST_P(Fencing, AClosedSocketIsNoProofWhileTheProcessLives) {
  ChildProcess sneaky([](int in, int out) {
    const std::string name = AwaitText(in);
    auto ring = MappedRing::Connect(WorkerOptions(name));
    if (!ring.ok()) return 3;
    // The socket goes, the mapping stays.
    for (int fd = 3; fd < 64; ++fd) {
      if (fd != in && fd != out) close(fd);
    }
    Say(out, 'c');
    Await<char>(in);
    return 0;
  });
  Trainer trainer(50, SmallOptions(), GetParam());
  sneaky.TellText(trainer.server->socket_name());
  ASSERT_EQ(sneaky.Hear(), 'c');
  EXPECT_EQ(trainer.server->Holders().size(), 1u);
  const ShardHeader lost = HeaderOf({0, 0}, 0, 0, 1, 1);
  trainer.server->Fence(trainer.Request(lost, sneaky.pid()));
  const auto outcome = trainer.fences.Wait();
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->row.slot, 3u) << "without proof the batch has to move";
}

TEST(ExitWatch, KnowsAProcessByItselfNotByItsNumber) {
  for (const ExitProof proof : {ExitProof::kPidfd, ExitProof::kFolder}) {
    ChildProcess child(&RunWorker);
    const auto watch = ExitWatch::Of(child.pid(), proof);
    ASSERT_TRUE(watch.ok()) << watch.status();
    EXPECT_EQ(watch->proof(), proof);
    EXPECT_FALSE(watch->Ended());
    const pid_t pid = child.pid();
    child.Kill();
    EXPECT_TRUE(watch->Ended());
    EXPECT_TRUE(absl::IsNotFound(ExitWatch::Of(pid, proof).status()));
  }
  EXPECT_FALSE(ExitWatch().Ended()) << "nothing watched is no proof";
}

TEST(MappedDelivery, ADeadProcessIsFencedOnceTheDeviceIsDoneWithIt) {
  std::atomic<int> asked = 0;
  std::atomic<bool> left = false;
  ChildProcess worker(&RunZombie);
  Trainer trainer(kPatience, SmallOptions(), ExitProof::kPidfd, [&](pid_t, std::int64_t ended_ms) {
    EXPECT_GE(ended_ms, 0);
    ++asked;
    return left.load();
  });
  worker.TellText(trainer.server->socket_name());
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  worker.Tell(header);
  ASSERT_EQ(worker.Hear(), 'w');
  trainer.server->Fence(trainer.Request(header, worker.pid()));
  worker.Kill();
  ASSERT_TRUE(Comes("third question to the device", [&] { return asked >= 3; }));
  EXPECT_EQ(trainer.server->Holders().size(), 1u) << "the device may still write for it";
  left = true;
  EXPECT_TRUE(trainer.fences.Wait().has_value());
  EXPECT_EQ(trainer.server->Holders().size(), 0u);
}

/// Maps the ring for a lease of that scheduler and says 'c'.
template <std::uint32_t kIncarnation>
int RunHolder(int in, int out) {
  MappedRing::Options options = WorkerOptions(AwaitText(in));
  options.incarnation = kIncarnation;
  if (!MappedRing::Connect(options).ok()) return 3;
  Say(out, 'c');
  Await<char>(in);
  return 0;
}

std::vector<std::int64_t> PidsOf(const ChildProcess& child) { return {child.pid()}; }

TEST(RingHolders, AreTheProcessesThatHaveItMappedUntilTheyEnd) {
  ChildProcess worker(&RunHolder<0>);
  Trainer trainer;
  EXPECT_TRUE(trainer.server->Holders().empty());
  worker.TellText(trainer.server->socket_name());
  ASSERT_EQ(worker.Hear(), 'c');
  EXPECT_EQ(trainer.server->Holders(), PidsOf(worker));
  EXPECT_EQ(trainer.server->StopAdmitting(), PidsOf(worker));
  worker.Kill();
  EXPECT_TRUE(Comes("its end", [&] { return trainer.server->Holders().empty(); }));
}

TEST(RingHolders, WhoAsksWhileNobodyIsAdmittedWaitsForTheNextScheduler) {
  ChildProcess slow([](int in, int out) {
    auto socket = ConnectAbstract(AwaitText(in), kPatience);
    if (!socket.ok()) return 3;
    std::array<std::byte, kMaxGreetingBytes> buffer;
    auto size = ReceiveMessage(socket->get(), buffer);
    if (!size.ok()) return 4;
    const auto challenge = DecodeChallenge(std::span(buffer).first(*size));
    if (!challenge.ok()) return 5;
    Hello hello;
    hello.stream = kStream;
    hello.incarnation = 7;
    const auto message = EncodeHello(hello, challenge->nonce, SecretOf(1));
    if (!SendMessage(socket->get(), message).ok()) return 6;
    Say(out, 'h');
    size = ReceiveMessage(socket->get(), buffer);
    Say(out, size.ok() && *size > 0 ? 'c' : 'r');
    Await<char>(in);
    return 0;
  });
  Trainer trainer;
  trainer.server->StopAdmitting();
  slow.TellText(trainer.server->socket_name());
  ASSERT_EQ(slow.Hear(), 'h');
  // Answered after the thread has read all earlier messages.
  trainer.server->Fence(trainer.Request(HeaderOf({0, 0}, 0, 0, 1, 1), 0));
  ASSERT_TRUE(trainer.fences.Wait().has_value());
  EXPECT_TRUE(trainer.server->Holders().empty());
  trainer.server->AdmitSince(7);
  EXPECT_EQ(slow.Hear(), 'c');
  EXPECT_EQ(trainer.server->Holders(), PidsOf(slow));
}

TEST(RingHolders, NobodyMapsItForALeaseOfAnEarlierScheduler) {
  ChildProcess former(&RunHolder<6>), present(&RunHolder<7>), later(&RunHolder<8>);
  Trainer trainer;
  trainer.server->StopAdmitting();
  trainer.server->AdmitSince(7);
  former.TellText(trainer.server->socket_name());
  EXPECT_EQ(former.Join(), 3);
  present.TellText(trainer.server->socket_name());
  EXPECT_EQ(present.Hear(), 'c');
  later.TellText(trainer.server->socket_name());
  EXPECT_EQ(later.Hear(), 'c');
  EXPECT_EQ(trainer.server->Holders().size(), 2u);
}

TEST(RingHolders, AMappingIsForLeasesOfItsSchedulerAndLaterOnes) {
  Trainer trainer;
  MappedRing::Options options = WorkerOptions(trainer.server->socket_name());
  options.incarnation = 7;
  const auto ring = MappedRing::Connect(options);
  ASSERT_TRUE(ring.ok()) << ring.status();
  EXPECT_FALSE((*ring)->Covers({6, 99}));
  EXPECT_TRUE((*ring)->Covers({7, 1}));
  EXPECT_TRUE((*ring)->Covers({8, 1}));
}

TEST(MappedDelivery, WhatAKilledWorkerReportedStillCounts) {
  ChildProcess worker(&RunWorker);
  Trainer trainer;
  worker.TellText(trainer.server->socket_name());
  ASSERT_EQ(worker.Hear(), 'c');
  worker.Tell(HeaderOf({0, 0}, 0, 0, 1, 1));
  ASSERT_EQ(worker.Hear(), 'r');
  worker.Tell(HeaderOf({0, 0}, 1, 0, 1, 2));
  ASSERT_EQ(worker.Hear(), 'r');
  worker.Kill();
  EXPECT_TRUE(trainer.ring->Next(kPatience).ok());
}

TEST(MappedDelivery, WhatADeadWorkerReportedIsReadInTurnsToItsEnd) {
  ChildProcess worker([](int in, int out) {
    auto ring = MappedRing::Connect(WorkerOptions(AwaitText(in)));
    if (!ring.ok()) return 3;
    Say(out, 'c');
    Await<char>(in);
    // More than is read at a turn.
    const ShardHeader dead = HeaderOf({0, 0}, 0, 0, 9, 1), good = HeaderOf({0, 0}, 0, 0, 1, 1);
    for (int i = 0; i < 70; ++i) {
      if (!(*ring)->ReportShardFinished(dead).ok()) return 4;
    }
    return (*ring)->ReportShardFinished(good).ok() ? 0 : 5;
  });
  auto ring = MakeRing(SmallOptions());
  std::promise<void> is_busy, go_on;
  RingServer::Options options;
  options.secret = SecretOf(1);
  options.stream = kStream;
  options.fenced = [&](const FenceOutcome&) {
    is_busy.set_value();
    go_on.get_future().wait();
  };
  const auto server = RingServer::Start(*ring, options);
  ASSERT_TRUE(server.ok()) << server.status();
  worker.TellText((*server)->socket_name());
  EXPECT_EQ(worker.Hear(), 'c');
  const ShardHeader fenced = HeaderOf({0, 1}, 0, 1, 1, 2);
  (*server)->Fence({fenced.shard, fenced.lease, 0, fenced.grant});
  is_busy.get_future().wait();
  worker.Tell('x');
  EXPECT_EQ(worker.Join(), 0);
  go_on.set_value();
  EXPECT_TRUE(Comes("last report", [&] { return ring->stats().shards_counted == 1; }));
  EXPECT_EQ(ring->stats().shards_refused, 70u);
}

TEST(MappedDelivery, AProcessThatGreetsNobodyIsLetGoAfterItsDeadline) {
  auto ring = MakeRing(SmallOptions());
  RingServer::Options options;
  options.greeting_deadline_ms = 20;
  const auto server = RingServer::Start(*ring, options);
  ASSERT_TRUE(server.ok()) << server.status();
  UniqueFd silent;
  ASSERT_TRUE(IsChallenged((*server)->socket_name(), &silent));
  std::array<std::byte, kMaxGreetingBytes> buffer;
  const auto end = ReceiveMessage(silent.get(), buffer);
  EXPECT_TRUE(end.ok() && *end == 0) << end.status();
}

TEST(MappedDelivery, AWorkerShowsNothingToASocketOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ChildProcess impostor([](int in, int out) {
    if (setuid(65534) != 0) return 9;
    std::string name;
    auto listener = ListenAbstract("patchbay-impostor", &name);
    if (!listener.ok()) return 8;
    fcntl(listener->get(), F_SETFL, 0);
    SayLine(out, name);
    UniqueFd socket(accept(listener->get(), nullptr, nullptr));
    SendMessage(socket.get(), EncodeChallenge({})).IgnoreError();
    Await<char>(in);  // the worker has given up
    std::array<std::byte, kMaxGreetingBytes> buffer;
    const auto hello = ReceiveMessage(socket.get(), buffer);
    return hello.ok() && *hello > 0 ? 7 : 0;
  });
  MappedRing::Options options = WorkerOptions(impostor.HearLine());
  options.timeout_ms = 200;
  const auto ring = MappedRing::Connect(options);
  EXPECT_TRUE(absl::IsPermissionDenied(ring.status())) << ring.status();
  impostor.Tell('x');
  EXPECT_EQ(impostor.Join(), 0);
}

TEST(MappedDelivery, ATrainerThatDoesNotAnswerIsUnavailable) {
  std::string name;
  const auto listener = ListenAbstract("patchbay-frozen", &name);
  ASSERT_TRUE(listener.ok());
  MappedRing::Options options = WorkerOptions(name);
  options.timeout_ms = 20;
  const auto ring = MappedRing::Connect(options);
  EXPECT_TRUE(absl::IsUnavailable(ring.status())) << ring.status();
}

TEST(MappedDelivery, AKilledTrainerLeavesNothingBehind) {
  ChildProcess trainer([](int, int out) {
    Trainer inside;
    const std::string name = inside.server->socket_name();
    Say(out, static_cast<char>(name.size()));
    for (const char c : name) Say(out, c);
    for (;;) pause();
    return 0;
  });
  std::string name(static_cast<std::size_t>(trainer.Hear()), '\0');
  for (char& c : name) c = trainer.Hear();
  auto ring = MappedRing::Connect(WorkerOptions(name));
  ASSERT_TRUE(ring.ok()) << ring.status();
  trainer.Kill();
  ASSERT_TRUE(Comes("end of the trainer", [&] { return (*ring)->Closed(); }));
  EXPECT_TRUE(absl::IsUnavailable((*ring)->ReportShardFinished(HeaderOf({0, 0}, 0, 0, 1, 1))));
  EXPECT_TRUE(absl::IsUnavailable(MappedRing::Connect(WorkerOptions(name)).status()));
  ring->reset();
  // The memory was a memfd and the socket abstract: no name is left anywhere.
  auto sockets = ReadFile(Folders::OfThisUser(), "/proc/net/unix", 1 << 24);
  ASSERT_TRUE(sockets.ok());
  EXPECT_EQ(sockets->find(name), std::string::npos);
}

}  // namespace
}  // namespace patchbay::data
