// Delivery between nodes, over loopback TCP: only what the table admits lands, and a range is free
// again when its transfer has ended, not before.
#include "runtime/data/remote_delivery.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/hash.h"
#include "runtime/data/ring_server.h"
#include "tests/runtime/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

constexpr std::int64_t kPatience = 20'000;  // ms; only a failing test waits this long
const BatchLayout kBigLayout = SmallLayout(32 << 20);
const Network kLoopback = {NetworkPolicy::kIsolatedTcp, "127.0.0.1"};

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
  explicit Node(const SlotTableOptions& options = SmallOptions(),
                const BatchLayout& layout = SmallLayout()) {
    ring = MakeRing(options, layout);
    auto started = RemoteReceiver::Start(*ring, {kLoopback, SecretOf(1), kStream});
    EXPECT_TRUE(started.ok()) << started.status();
    receiver = std::move(*started);
  }
  std::unique_ptr<Ring> ring;
  std::unique_ptr<RemoteReceiver> receiver;
};

std::unique_ptr<RemoteSender> MakeSender(std::int64_t timeout_ms = kPatience) {
  auto sender = RemoteSender::Start({kLoopback, timeout_ms});
  EXPECT_TRUE(sender.ok()) << sender.status();
  return std::move(*sender);
}

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

/// Connects, waits for a header, sends its bytes.
int SendOne(int in, const BatchLayout& layout) {
  const std::string address = AwaitText(in);
  auto sender = RemoteSender::Start({kLoopback, kPatience});
  if (!sender.ok()) return 3;
  const auto header = Await<ShardHeader>(in);
  const Payload payload(header, 0x33, layout);
  return (*sender)->Send(address, SecretOf(1), header, payload).ok() ? 0 : 4;
}
int RunSender(int in, int) { return SendOne(in, SmallLayout()); }
int RunBigSender(int in, int) { return SendOne(in, kBigLayout); }

TEST(RemoteDelivery, BringsABatchFromAnotherProcess) {
  ChildProcess first(&RunSender), second(&RunSender);
  Node node;
  first.TellText(node.receiver->address());
  second.TellText(node.receiver->address());
  first.Tell(HeaderOf({0, 0}, 0, 0, 1, 1));
  second.Tell(HeaderOf({0, 0}, 1, 0, 1, 2));
  const auto batch = node.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(AllPatchesAre(*batch, 0x33));
  EXPECT_EQ(first.Join(), 0);
  EXPECT_EQ(second.Join(), 0);
}

TEST(RemoteDelivery, UsesAndReportsTheDeclaredTransportOnly) {
  Node node;
  auto sender = MakeSender();
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(sender->Send(node.receiver->address(), SecretOf(1), header, Payload(header, 1)).ok());
  EXPECT_EQ(sender->Transport(), "tcp/lo");
  while (node.receiver->Transport().empty()) std::this_thread::yield();
  EXPECT_EQ(node.receiver->Transport(), "tcp/lo");
}

TEST(RemoteDelivery, RefusesToStartWithoutAPolicy) {
  auto ring = MakeRing(SmallOptions());
  const Network none{NetworkPolicy::kNone, "127.0.0.1"};
  EXPECT_TRUE(absl::IsFailedPrecondition(
      RemoteReceiver::Start(*ring, {none, SecretOf(1), kStream}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(RemoteSender::Start({none, 1000}).status()));
}

TEST(RemoteDelivery, TakesNothingFromASenderWithoutTheSecret) {
  Node node;
  auto sender = MakeSender();
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  EXPECT_FALSE(
      sender->Send(node.receiver->address(), SecretOf(2), header, Payload(header, 9)).ok());
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  EXPECT_GE(node.ring->stats().shards_refused, 1u);
  EXPECT_EQ(node.ring->memory().host()[0], std::byte{0}) << "not a byte was taken";
}

TEST(RemoteDelivery, LooksAtTheGrantBeforeItTakesAByte) {
  Node node;
  auto sender = MakeSender();
  const auto send = [&](const ShardHeader& h) {
    return sender->Send(node.receiver->address(), SecretOf(1), h, Payload(h, 9));
  };
  ShardHeader oversized = HeaderOf({0, 0}, 0, 0, 1, 1);
  oversized.grant.count = 4;
  EXPECT_FALSE(send(oversized).ok());
  EXPECT_FALSE(send(HeaderOf({0, 0}, 0, 0, 7, 2)).ok()) << "dead generation";
  EXPECT_FALSE(send(HeaderOf({0, 0}, 0, 3, 1, 3)).ok()) << "a spare slot";
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  const auto host = node.ring->memory().host();
  EXPECT_TRUE(std::all_of(host.begin(), host.end(), [](std::byte b) { return b == std::byte{0}; }));
  // The connection survives what is normal operation.
  EXPECT_TRUE(send(HeaderOf({0, 0}, 0, 0, 1, 4)).ok());
  EXPECT_FALSE(send(HeaderOf({0, 0}, 0, 0, 1, 5)).ok()) << "it counted before";
}

TEST(RemoteDelivery, DoesNotCountAShardWhoseBytesAreNotTheSenders) {
  Node node;
  auto sender = MakeSender();
  ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const Payload payload(header, 5);
  header.crc32c[1] = Crc32c(payload.arrays[1]) ^ 1;  // the first array is good
  sender->Send(node.receiver->address(), SecretOf(1), header, payload).IgnoreError();
  while (node.ring->stats().shards_corrupt == 0) std::this_thread::yield();
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  header.crc32c[1] = 0;
  header.lease.counter = 2;
  EXPECT_TRUE(sender->Send(node.receiver->address(), SecretOf(1), header, payload).ok());
  while (node.ring->stats().shards_counted == 0) std::this_thread::yield();
}

TEST(RemoteDelivery, TakesNothingOfAStreamWithOtherArrays) {
  Node node;
  auto sender = MakeSender();
  ShardHeader few_arrays = HeaderOf({0, 0}, 0, 0, 1, 1);
  few_arrays.arrays = 1;
  const Payload payload = OneArray(few_arrays, 9);
  EXPECT_FALSE(sender->Send(node.receiver->address(), SecretOf(1), few_arrays, payload).ok());
  EXPECT_GE(node.ring->stats().shards_refused, 1u);
  EXPECT_EQ(node.ring->memory().host()[0], std::byte{0}) << "not a byte was taken";
}

TEST(RemoteDelivery, TakesOnlyAPayloadOfAsManyArraysAsTheHeaderSays) {
  Node node;
  auto sender = MakeSender();
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      sender->Send(node.receiver->address(), SecretOf(1), header, OneArray(header, 1))));
  EXPECT_EQ(node.ring->stats().shards_refused, 0u) << "nothing was sent";
}

TEST(RemoteDelivery, ASenderKilledInTheMiddleFreesItsRangeAndNothingCounts) {
  ChildProcess doomed(&RunBigSender);
  Node node(BigOptions(), kBigLayout);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1, BigOptions().geometry);
  doomed.TellText(node.receiver->address());
  doomed.Tell(header);
  while (!node.ring->Receiving(header.shard, header.lease)) std::this_thread::yield();
  doomed.Stop();
  ASSERT_TRUE(node.ring->Receiving(header.shard, header.lease))
      << "the transfer was over too soon to interrupt";
  doomed.Kill();
  while (node.ring->Receiving(header.shard, header.lease)) std::this_thread::yield();
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
  EXPECT_GE(node.ring->stats().receives_failed, 1u);

  auto sender = MakeSender();
  ShardHeader again = header;
  again.lease.counter = 2;
  const Payload payload(again, 8, kBigLayout);
  ASSERT_TRUE(sender->Send(node.receiver->address(), SecretOf(1), again, payload).ok());
  const auto batch = node.ring->Next(kPatience);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(AllPatchesAre(*batch, 8, kBigLayout));
}

/// Freezes a sender in the middle of its transfer under lease (1, 1), fences its shard with
/// `fence`, and expects the range to be free then.
void FenceAFrozenSender(const LeaseNumber& fence) {
  ChildProcess frozen(&RunBigSender);
  Node node(BigOptions(), kBigLayout);
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
  frozen.TellText(node.receiver->address());
  frozen.Tell(header);
  while (!node.ring->Receiving(header.shard, header.lease)) std::this_thread::yield();
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
  frozen.Continue();
  EXPECT_EQ(frozen.Join(), 4) << "its send fails when it wakes";
  EXPECT_EQ(node.ring->stats().shards_counted, 0u);
}

TEST(RemoteDelivery, FencingEndsTheTransferOfAFrozenSender) { FenceAFrozenSender({1, 1}); }

TEST(RemoteDelivery, FencingByAnotherSchedulerEndsTheTransferOfAFormerLease) {
  FenceAFrozenSender({2, 0});
}

TEST(RemoteDelivery, ASendToAnUnreachableTrainerFails) {
  auto sender = MakeSender(2'000);
  const ShardHeader header = HeaderOf({0, 0}, 0, 0, 1, 1);
  const Status sent = sender->Send("127.0.0.1:1", SecretOf(1), header, Payload(header, 1));
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
  EXPECT_TRUE(
      absl::IsInvalidArgument(sender->Send("trainer:77", SecretOf(1), header, Payload(header, 1))));
}

int RunReceiver(int in, int out) {
  Node node;
  const std::string& address = node.receiver->address();
  Say(out, static_cast<char>(address.size()));
  for (const char c : address) Say(out, c);
  Await<char>(in);
  return 0;
}

std::string AddressFrom(const ChildProcess& child) {
  std::string address(static_cast<std::size_t>(child.Hear()), '\0');
  for (char& c : address) c = child.Hear();
  return address;
}

TEST(RemoteDelivery, AFrozenTrainerDoesNotHoldASenderForEver) {
  ChildProcess trainer(&RunReceiver);
  const std::string address = AddressFrom(trainer);
  auto sender = MakeSender(300);
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(sender->Send(address, SecretOf(1), first, Payload(first, 1)).ok());
  trainer.Stop();
  const ShardHeader second = HeaderOf({0, 0}, 1, 0, 1, 2);
  const Status sent = sender->Send(address, SecretOf(1), second, Payload(second, 1));
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

TEST(RemoteDelivery, AKilledTrainerEndsWhatIsSentToIt) {
  ChildProcess trainer(&RunReceiver);
  const std::string address = AddressFrom(trainer);
  auto sender = MakeSender();
  const ShardHeader first = HeaderOf({0, 0}, 0, 0, 1, 1);
  ASSERT_TRUE(sender->Send(address, SecretOf(1), first, Payload(first, 1)).ok());
  trainer.Stop();
  Status sent;
  std::thread sending([&] {
    const ShardHeader second = HeaderOf({0, 0}, 1, 0, 1, 2);
    sent = sender->Send(address, SecretOf(1), second, Payload(second, 1));
  });
  trainer.Kill();
  sending.join();
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

TEST(RemoteDelivery, ManySendersShareOneTrainer) {
  SlotTableOptions options = SmallOptions();
  options.geometry.global_batch = 64;
  options.geometry.patches_per_epoch = 64;
  Node node(options);
  std::vector<std::thread> threads;
  auto one = MakeSender(), other = MakeSender();
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t shard = t; shard < 32; shard += 4) {
        const ShardHeader h = HeaderOf({0, 0}, shard, 0, 1, shard + 1, options.geometry);
        RemoteSender& sender = shard % 2 == 0 ? *one : *other;
        EXPECT_TRUE(
            sender
                .Send(node.receiver->address(), SecretOf(1), h, Payload(h, static_cast<int>(shard)))
                .ok());
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

}  // namespace
}  // namespace patchbay::data
