// Delivery between nodes, over loopback, by TLS and by UCX: only admitted shards are written, and a
// range is free again when its transfer has ended, not before.
#include "runtime/wire/data/remote_delivery.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "gtest/gtest.h"
#include "runtime/core/hash.h"
#include "runtime/wire/data/ring_server.h"
#include "runtime/wire/data/sockets.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

const BatchLayout kBigLayout = SmallLayout(32 << 20);

/// TCP ports that this process listens on.
std::vector<std::uint16_t> PortsOfThisProcess() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    sockets.insert(std::filesystem::read_symlink(entry.path(), gone).string());
  }
  std::vector<std::uint16_t> ports;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream rows(table);
    for (std::string row; std::getline(rows, row);) {
      std::istringstream words(row);
      std::string number, local, peer, state, inode;
      words >> number >> local >> peer >> state;
      for (int i = 0; i < 6; ++i) words >> inode;
      if (state != "0A" || !sockets.contains("socket:[" + inode + "]")) continue;
      const std::string port = local.substr(local.rfind(':') + 1);
      ports.push_back(static_cast<std::uint16_t>(std::stoul(port, nullptr, 16)));
    }
  }
  return ports;
}

/// UCX over TCP stands in for a fabric.
Network LoopbackOf(NetworkPolicy policy) {
  Network network;
  network.policy = policy;
  network.address = "127.0.0.1";
  network.rdma_over_tcp = true;
  return network;
}

/// One slot of one 64 MiB shard: long enough in flight to be interrupted.
SlotTableOptions BigOptions() {
  SlotTableOptions o = SmallOptions();
  o.geometry.global_batch = 2;
  o.geometry.patches_per_epoch = 8;
  o.slots = 1;
  o.spares = 1;
  return o;
}

struct Node {
  explicit Node(NetworkPolicy policy, const SlotTableOptions& options = SmallOptions(),
                const BatchLayout& layout = SmallLayout(), std::size_t senders_max = kMaxSenders) {
    ring = MakeRing(options, layout);
    RemoteReceiver::Options receiving{LoopbackOf(policy), SecretOf(1), kTrainer};
    receiving.senders_max = senders_max;
    receiving.shard_deadline_ms = 10 * kPatience;  // nothing here ends by it
    auto started = RemoteReceiver::Start(*ring, receiving);
    EXPECT_TRUE(started.ok()) << started.status();
    receiver = std::move(*started);
  }
  RemoteTarget target() const { return {receiver->address(), SecretOf(1), kStream, 0}; }

  std::unique_ptr<Ring> ring;
  std::unique_ptr<RemoteReceiver> receiver;
};

std::unique_ptr<RemoteSender> MakeSender(NetworkPolicy policy,
                                         std::int64_t timeout_ms = kPatience) {
  auto sender = RemoteSender::Start({LoopbackOf(policy), timeout_ms});
  EXPECT_TRUE(sender.ok()) << sender.status();
  return std::move(*sender);
}

class RemoteDelivery : public ::testing::TestWithParam<NetworkPolicy> {
 protected:
  std::unique_ptr<RemoteSender> MakeSender(std::int64_t timeout_ms = kPatience) const {
    return data::MakeSender(GetParam(), timeout_ms);
  }
};

INSTANTIATE_TEST_SUITE_P(Transports, RemoteDelivery,
                         ::testing::Values(NetworkPolicy::kTls, NetworkPolicy::kRdma),
                         [](const auto& policy) { return std::string(NameOf(policy.param)); });

/// A shard's bytes, an array after another, all of one value.
struct Payload {
  Payload(const ShardHeader& header, int value, const BatchLayout& layout = SmallLayout()) {
    for (const ArrayLayout& array : layout.arrays) {
      arrays.emplace_back(header.grant.count * array.PatchBytes(), static_cast<std::byte>(value));
    }
    spans.assign(arrays.begin(), arrays.end());
  }
  operator RemoteSender::Payload() const { return spans; }  // NOLINT: what Send takes
  std::vector<std::vector<std::byte>> arrays;
  std::vector<std::span<const std::byte>> spans;
};

Payload OneArray(const ShardHeader& header, int value) {
  BatchLayout image = SmallLayout();
  image.arrays.pop_back();
  return Payload(header, value, image);
}

/// Waits for the policy and an address, connects, waits for a header, sends its bytes.
int SendOne(int in, const BatchLayout& layout) {
  const auto policy = Await<NetworkPolicy>(in);
  const std::string address = AwaitText(in);
  const auto sender = MakeSender(policy);
  const auto header = Await<ShardHeader>(in);
  const Payload payload(header, 0x33, layout);
  return sender->Send({address, SecretOf(1), kStream, 0}, header, payload).ok() ? 0 : 4;
}
int RunSender(int in, int) { return SendOne(in, SmallLayout()); }
int RunBigSender(int in, int) { return SendOne(in, kBigLayout); }

/// A sender in a process of its own, told where to send to.
struct SenderProcess : ChildProcess {
  using ChildProcess::ChildProcess;
  void SendTo(NetworkPolicy policy, const std::string& address) const {
    Tell(policy);
    TellText(address);
  }
};

TEST_P(RemoteDelivery, BringsABatchFromAnotherProcess) {
  SenderProcess first(&RunSender), second(&RunSender);
  Node node(GetParam());
  first.SendTo(GetParam(), node.receiver->address());
  second.SendTo(GetParam(), node.receiver->address());
  first.Tell(HeaderOf({0, 0}, 0, 0, 1, 1));
  second.Tell(HeaderOf({0, 0}, 1, 0, 1, 2));
  const auto batch = node.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(AllPatchesAre(*batch, 0x33));
  EXPECT_EQ(first.Join(), 0);
  EXPECT_EQ(second.Join(), 0);
}

TEST_P(RemoteDelivery, UsesAndReportsTheDeclaredTransportOnly) {
  Node node(GetParam());
  auto sender = MakeSender();
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(sender->Send(node.target(), header, Payload(header, 1)).ok());
  const bool is_tls = GetParam() == NetworkPolicy::kTls;
  const std::string expected = is_tls ? "tls/TLS_AES_128_GCM_SHA256" : "tcp/lo";
  EXPECT_EQ(sender->Transport(), expected);
  ASSERT_TRUE(
      Comes("transport of the receiver", [&] { return !node.receiver->Transport().empty(); }));
  EXPECT_EQ(node.receiver->Transport(), expected);
}

TEST(RemoteDeliveryStart, IsRefusedWhereNothingComesFromOtherNodes) {
  auto ring = MakeRing(SmallOptions());
  const Network none = LoopbackOf(NetworkPolicy::kNone);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RemoteReceiver::Start(*ring, {none, SecretOf(1), kTrainer}).status()));
}

TEST_P(RemoteDelivery, TakesNothingFromASenderWithoutTheSecret) {
  Node node(GetParam());
  auto sender = MakeSender();
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  RemoteTarget stranger = node.target();
  stranger.secret = SecretOf(2);
  EXPECT_FALSE(sender->Send(stranger, header, Payload(header, 9)).ok());
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  ASSERT_TRUE(
      Comes("dropped connection", [&] { return node.receiver->connections_dropped() > 0; }));
  EXPECT_EQ(node.ring->memory().host()[0], std::byte{0}) << "not a byte was taken";
}

TEST_P(RemoteDelivery, LooksAtTheGrantBeforeItTakesAByte) {
  Node node(GetParam());
  auto sender = MakeSender();
  const auto send = [&](const ShardHeader& h) {
    return sender->Send(node.target(), h, Payload(h, 9));
  };
  ShardHeader oversized = HeaderOf({0, 0}, 0, 0, 1, 1);
  oversized.grant.count = 4;
  EXPECT_FALSE(send(oversized).ok());
  EXPECT_FALSE(send(HeaderOf({0, 0}, 0, 0, 7, 2)).ok()) << "dead generation";
  EXPECT_FALSE(send(HeaderOf({0, 0}, 0, 3, 1, 3)).ok()) << "a spare slot";
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  const auto host = node.ring->memory().host();
  EXPECT_TRUE(std::all_of(host.begin(), host.end(), [](std::byte b) { return b == std::byte{0}; }));
  // The connection survives refusals, which are normal operation.
  EXPECT_TRUE(send(HeaderOf({0, 0}, 0, 0, 1, 4)).ok());
  EXPECT_FALSE(send(HeaderOf({0, 0}, 0, 0, 1, 5)).ok()) << "it counted before";
}

TEST_P(RemoteDelivery, DoesNotCountAShardWhoseBytesAreNotTheSenders) {
  Node node(GetParam());
  auto sender = MakeSender();
  ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const Payload payload(header, 5);
  header.crc32c[1] = Crc32c(payload.arrays[1]) ^ 1;  // the first array is good
  sender->Send(node.target(), header, payload).IgnoreError();
  ASSERT_TRUE(Comes("corrupt shard", [&] { return node.ring->stats().shards_corrupt > 0; }));
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  header.crc32c[1] = 0;
  header.lease.counter = 2;
  EXPECT_TRUE(sender->Send(node.target(), header, payload).ok());
  ASSERT_TRUE(Comes("counted shard", [&] { return node.ring->stats().shards_counted > 0; }));
}

TEST_P(RemoteDelivery, TakesNothingOfAStreamWithOtherArrays) {
  Node node(GetParam());
  auto sender = MakeSender();
  ShardHeader few_arrays = HeaderOf({0, 0}, 0, 0, 1, 1);
  few_arrays.arrays = 1;
  const Payload payload = OneArray(few_arrays, 9);
  EXPECT_FALSE(sender->Send(node.target(), few_arrays, payload).ok());
  EXPECT_GE(node.ring->stats().shards_refused, 1u);
  EXPECT_EQ(node.ring->memory().host()[0], std::byte{0}) << "not a byte was taken";
}

TEST_P(RemoteDelivery, TakesOnlyAPayloadOfAsManyArraysAsTheHeaderSays) {
  Node node(GetParam());
  auto sender = MakeSender();
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(sender->Send(node.target(), header, OneArray(header, 1))));
  EXPECT_EQ(node.ring->stats().shards_refused, 0u) << "nothing was sent";
}

TEST_P(RemoteDelivery, ASenderKilledInTheMiddleFreesItsRangeAndNothingCounts) {
  SenderProcess doomed(&RunBigSender);
  Node node(GetParam(), BigOptions(), kBigLayout);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1, BigOptions().geometry);
  doomed.SendTo(GetParam(), node.receiver->address());
  doomed.Tell(header);
  ASSERT_TRUE(Comes("transfer that runs",
                    [&] { return node.ring->Receiving(header.shard, header.lease); }));
  doomed.Stop();
  ASSERT_TRUE(node.ring->Receiving(header.shard, header.lease))
      << "the transfer was over too soon to interrupt";
  doomed.Kill();
  ASSERT_TRUE(Comes("end of the dead sender's transfer",
                    [&] { return !node.ring->Receiving(header.shard, header.lease); }));
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  EXPECT_GE(node.ring->stats().receives_failed, 1u);

  auto sender = MakeSender();
  ShardHeader again = header;
  again.lease.counter = 2;
  const Payload payload(again, 8, kBigLayout);
  ASSERT_TRUE(sender->Send(node.target(), again, payload).ok());
  const auto batch = node.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(AllPatchesAre(*batch, 8, kBigLayout));
}

/// Freezes a sender in the middle of its transfer under lease (1, 1), fences its shard with
/// `fence`, and expects the range to be free then.
void FenceAFrozenSender(NetworkPolicy policy, const LeaseNumber& fence) {
  SenderProcess frozen(&RunBigSender);
  Node node(policy, BigOptions(), kBigLayout);
  std::mutex mu;
  std::condition_variable changed;
  std::optional<FenceOutcome> answer;
  RingServer::Options options;
  options.secret = SecretOf(1);
  options.stream = kStream;
  options.proof_deadline_ms = kPatience;
  options.remote_gone = [&node](const ShardId& shard, const LeaseNumber& lease) {
    return node.receiver->EndTransfer(shard, lease);
  };
  options.fenced = [&](const FenceOutcome& outcome) {
    const std::lock_guard lock(mu);
    answer = outcome;
    changed.notify_all();
  };
  auto server = RingServer::Start(*node.ring, options);
  ASSERT_TRUE(server.ok());

  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1, BigOptions().geometry);
  frozen.SendTo(policy, node.receiver->address());
  frozen.Tell(header);
  ASSERT_TRUE(Comes("transfer that runs",
                    [&] { return node.ring->Receiving(header.shard, header.lease); }));
  frozen.Stop();
  ASSERT_TRUE(node.ring->Receiving(header.shard, header.lease))
      << "the transfer was over too soon to freeze";
  (*server)->Fence({header.shard, fence, 0, header.grant});
  {
    std::unique_lock lock(mu);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::milliseconds(kPatience),
                                 [&] { return answer.has_value(); }));
  }
  EXPECT_FALSE(node.ring->Receiving(header.shard, header.lease));
  EXPECT_EQ(answer->row.slot, 0u) << "the range is free: nothing had to move";
  const auto host = node.ring->memory().host();
  std::memset(host.data(), 0x77, host.size());  // the next owner of the range writes it
  frozen.Continue();
  const int ended = frozen.Join();  // UCX may call what the trainer cancelled a success
  EXPECT_TRUE(ended == 4 || policy == NetworkPolicy::kRdma) << ended;
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  ShardHeader late = header;
  late.lease.counter = 2;
  late.grant.slot_generation = 7;
  EXPECT_FALSE(MakeSender(policy)->Send(node.target(), late, Payload(late, 9, kBigLayout)).ok());
  EXPECT_EQ(host[0], std::byte{0x77});  // the receiver has read all that came before that shard
  EXPECT_EQ(std::memcmp(host.data(), host.data() + 1, host.size() - 1), 0)
      << "it wrote to a range that is not its own any more";
}

TEST_P(RemoteDelivery, FencingEndsTheTransferOfAFrozenSender) {
  FenceAFrozenSender(GetParam(), {1, 1});
}

TEST_P(RemoteDelivery, FencingByAnotherSchedulerEndsTheTransferOfAFormerLease) {
  FenceAFrozenSender(GetParam(), {2, 0});
}

TEST_P(RemoteDelivery, ASendToAnUnreachableTrainerFails) {
  auto sender = MakeSender(2'000);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const bool is_tls = GetParam() == NetworkPolicy::kTls;
  const auto send = [&](const std::string& address) {
    return sender->Send({address, SecretOf(1), kStream, 0}, header, Payload(header, 1));
  };
  std::string gone = "tls://127.0.0.1:1/5";
  if (!is_tls) gone = Node(GetParam()).receiver->address();
  const Status sent = send(gone);
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
  const std::string other = is_tls ? "ucx://00" : "tls://127.0.0.1:1/5";
  EXPECT_TRUE(absl::IsUnavailable(send(other))) << "another transport's address";
  const std::string scheme(is_tls ? kTlsScheme : kUcxScheme);
  for (const char* bad : {"", "trainer:77/5", "0", "0g", "127.0.0.1:1/x", "0A"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(send(scheme + bad))) << bad;
  }
}

/// Seventeen zero bytes, which end UCX's own listener for senders.
TEST_P(RemoteDelivery, ZeroBytesToEveryOpenPortOfATrainerChangeNothing) {
  Node node(GetParam());
  const std::vector<std::uint16_t> ports = PortsOfThisProcess();
  EXPECT_FALSE(ports.empty()) << "TCP, and UCX's stand-in for a fabric, are reached by a port";
  for (const std::uint16_t port : ports) {
    const auto socket = ConnectTcp(StrCat("127.0.0.1:", port), SteadyNowMs() + kPatience);
    ASSERT_TRUE(socket.ok()) << socket.status();
    const std::array<char, 17> zeros{};
    ASSERT_EQ(send(socket->get(), zeros.data(), zeros.size(), MSG_NOSIGNAL), 17);
    AwaitSocket(socket->get(), POLLIN, SteadyNowMs() + kPatience).IgnoreError();  // its answer
  }
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  EXPECT_TRUE(MakeSender()->Send(node.target(), header, Payload(header, 1)).ok());
}

TEST(UcxHello, IsReadWithTheSecretItWasMadeWithAlone) {
  const std::vector<std::byte> address(60, std::byte{3});
  std::vector<std::byte> hello = EncodeHello(address, SecretOf(1));
  const auto read = DecodeHello(hello, SecretOf(1));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(std::ranges::equal(*read, address));
  EXPECT_TRUE(absl::IsPermissionDenied(DecodeHello(hello, SecretOf(2)).status()));
  for (std::size_t size = 0; size < hello.size(); ++size) {
    EXPECT_FALSE(DecodeHello(std::span(hello).first(size), SecretOf(1)).ok()) << size;
  }
  EXPECT_FALSE(DecodeHello(EncodeHello({}, SecretOf(1)), SecretOf(1)).ok()) << "no address";
  for (std::byte& b : hello) {
    b ^= std::byte{1};
    EXPECT_FALSE(DecodeHello(hello, SecretOf(1)).ok());
    b ^= std::byte{1};
  }
}

int RunReceiver(int in, int out) {
  Node node(Await<NetworkPolicy>(in));
  SayLine(out, node.receiver->address());
  Await<char>(in);
  return 0;
}

TEST_P(RemoteDelivery, AFrozenTrainerDoesNotHoldASenderForEver) {
  ChildProcess trainer(&RunReceiver);
  trainer.Tell(GetParam());
  const RemoteTarget target{trainer.HearLine(), SecretOf(1), kStream, 0};
  auto sender = MakeSender(300);
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(sender->Send(target, first, Payload(first, 1)).ok());
  trainer.Stop();
  const ShardHeader second = HeaderOf({0, 0}, 1, 0, 1, 2);
  const Status sent = sender->Send(target, second, Payload(second, 1));
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

TEST_P(RemoteDelivery, AKilledTrainerEndsWhatIsSentToIt) {
  ChildProcess trainer(&RunReceiver);
  trainer.Tell(GetParam());
  const RemoteTarget target{trainer.HearLine(), SecretOf(1), kStream, 0};
  auto sender = MakeSender();
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(sender->Send(target, first, Payload(first, 1)).ok());
  trainer.Stop();
  Status sent;
  std::thread sending([&] {
    const ShardHeader second = HeaderOf({0, 0}, 1, 0, 1, 2);
    sent = sender->Send(target, second, Payload(second, 1));
  });
  trainer.Kill();
  sending.join();
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

TEST_P(RemoteDelivery, ManySendersShareOneTrainer) {
  SlotTableOptions options = SmallOptions();
  options.geometry.global_batch = 64;
  options.geometry.patches_per_epoch = 64;
  Node node(GetParam(), options);
  std::vector<std::thread> threads;
  auto one = MakeSender(), other = MakeSender();
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t shard = t; shard < 32; shard += 4) {
        const ShardHeader h = HeaderOf({0, 0}, shard, 0, 1, shard + 1, options.geometry);
        RemoteSender& sender = shard % 2 == 0 ? *one : *other;
        EXPECT_TRUE(sender.Send(node.target(), h, Payload(h, static_cast<int>(shard))).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto batch = node.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (std::uint32_t shard = 0; shard < 32; ++shard) {
    EXPECT_TRUE(PatchesAre(*batch, 2 * shard, 2, static_cast<int>(shard)));
  }
}

TEST_P(RemoteDelivery, TakesSoManySendersAndNoMore) {
  Node node(GetParam(), SmallOptions(), SmallLayout(), 2);
  auto first = MakeSender(), second = MakeSender();
  const auto send = [&](RemoteSender& sender, const ShardHeader& h) {
    return sender.Send(node.target(), h, Payload(h, 1));
  };
  EXPECT_TRUE(send(*first, HeaderOf({0, 0}, 0, 0, 1, 1)).ok());
  EXPECT_TRUE(send(*second, HeaderOf({0, 0}, 1, 0, 1, 2)).ok());
  const ShardHeader more = HeaderOf({0, 1}, 0, 1, 1, 3);
  EXPECT_FALSE(send(*MakeSender(), more).ok());
  const std::vector<DroppedPeer> dropped = node.receiver->dropped_peers();
  EXPECT_TRUE(std::any_of(dropped.begin(), dropped.end(), [](const DroppedPeer& peer) {
    return peer.reason.find("too many senders") != std::string::npos;
  }));
  EXPECT_EQ(node.ring->stats().shards_counted, 2u);
  EXPECT_TRUE(send(*first, HeaderOf({0, 1}, 1, 1, 1, 4)).ok()) << "those before go on";
  second.reset();
  EXPECT_TRUE(
      Comes("place of a sender that is gone", [&] { return send(*MakeSender(), more).ok(); }));
}

TEST_P(RemoteDelivery, ForgettingATrainerClosesItsConnectionAndNoOther) {
  Node gone(GetParam(), SmallOptions(), SmallLayout(), 1);
  Node stays(GetParam(), SmallOptions(), SmallLayout(), 1);
  const auto send = [](RemoteSender& sender, const Node& node, std::uint32_t shard) {
    const ShardHeader h = HeaderOf({0, 0}, shard, 0, 1, shard + 1);
    return sender.Send(node.target(), h, Payload(h, 1)).ok();
  };
  auto sender = MakeSender();
  ASSERT_TRUE(send(*sender, gone, 0));
  ASSERT_TRUE(send(*sender, stays, 0));
  EXPECT_FALSE(send(*MakeSender(), gone, 1)) << "its one place is taken";
  sender->Forget(gone.target().address);
  EXPECT_TRUE(Comes("free place", [&] { return send(*MakeSender(), gone, 1); }));
  EXPECT_FALSE(send(*MakeSender(), stays, 1)) << "its one place is still taken";
}

TEST(TlsSenderLinks, AreKeptToSixtyFourTrainers) {
  constexpr NetworkPolicy kTls = NetworkPolicy::kTls;
  Node node(kTls, SmallOptions(), SmallLayout(), 1);
  const auto send = [&](RemoteSender& sender, std::uint32_t shard) {
    const ShardHeader h = HeaderOf({0, 0}, shard, 0, 1, shard + 1);
    return sender.Send(node.target(), h, Payload(h, 1)).ok();
  };
  auto sender = MakeSender(kTls);
  ASSERT_TRUE(send(*sender, 0));
  const auto turn_to_another = [&](std::uint32_t rank) {
    const ShardHeader h = HeaderOf({0, 0}, 0, 0, 1, 1);
    const RemoteTarget nobody{"tls://127.0.0.1:1/5", SecretOf(1), kStream, rank};
    EXPECT_FALSE(sender->Send(nobody, h, Payload(h, 1)).ok());
  };
  for (std::uint32_t rank = 1; rank < 64; ++rank) turn_to_another(rank);
  EXPECT_FALSE(send(*MakeSender(kTls), 1)) << "the first of 64 is kept";
  turn_to_another(64);
  EXPECT_TRUE(Comes("end of the least lately used", [&] { return send(*MakeSender(kTls), 1); }));
}

TEST(UcxDelivery, TakesNothingOfAPayloadThatIsSmallerThanItsGrant) {
  Node node(NetworkPolicy::kRdma);
  auto sender = MakeSender(NetworkPolicy::kRdma);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  ShardHeader half = header;
  half.grant.count = 1;
  EXPECT_FALSE(sender->Send(node.target(), header, Payload(half, 9)).ok());
  EXPECT_GE(node.ring->stats().shards_refused, 1u);
  EXPECT_EQ(node.ring->memory().host()[0], std::byte{0}) << "not a byte was taken";
}

TEST(RemoteDeliveryStart, TakesAThousandSendersUnlessToldOtherwise) {
  EXPECT_EQ(RemoteReceiver::Options().senders_max, 1024u);
}

}  // namespace
}  // namespace patchbay::data
