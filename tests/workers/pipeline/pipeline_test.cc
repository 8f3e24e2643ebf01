// The stages of a shard: bytes, order, bounds, failures and revocation.
#include "workers/stream/pipeline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/os/work_meter.h"
#include "tests/workers/pipeline/fake_stream.h"

namespace patchbay::workers {
namespace {

void MakeWholeEpoch(FakeStream& stream, const PipelineOptions& options) {
  const auto context = stream.Context();
  auto pipeline = stream.Start(options);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  std::vector<protocol::ShardLease> leases;
  for (std::uint64_t batch = 0; batch < BatchesPerEpoch(stream.geometry); ++batch) {
    for (std::uint32_t shard = 0; shard < ShardsInRank(stream.geometry, batch, 0); ++shard) {
      leases.push_back(stream.Lease(batch, shard));
      ASSERT_TRUE((*pipeline)->Submit(context, leases.back()).ok());
    }
  }
  for (const auto& lease : leases) EXPECT_TRUE(stream.endings.WaitFor(lease.lease).ok());
  const auto delivered = stream.delivery.delivered();
  ASSERT_EQ(delivered.size(), leases.size());
  for (const auto& shard : delivered) {
    const auto lease = std::find_if(leases.begin(), leases.end(),
                                    [&](const auto& l) { return l.shard == shard.shard; });
    ASSERT_NE(lease, leases.end());
    EXPECT_EQ(shard.bytes, stream.Expected(*context, *lease)) << shard.shard.ToString();
  }
}

TEST(Pipeline, MakesEveryPatchBitForBit) {
  FakeStream stream;
  MakeWholeEpoch(stream, {});
}

TEST(Pipeline, MakesTheSameBytesWithManyComputeThreads) {
  FakeStream stream;
  PipelineOptions options;
  options.compute_threads = 4;
  options.fetched_patches_max = 5;
  MakeWholeEpoch(stream, options);
}

TEST(Pipeline, MakesTheSameBytesWhenItMayHoldOnlyOnePatch) {
  FakeStream stream;
  PipelineOptions options;
  options.fetched_patches_max = 1;
  MakeWholeEpoch(stream, options);
}

TEST(Pipeline, MakesTheSameBytesWhenDeliveryWaitsForTheNetwork) {
  FakeStream stream;
  stream.delivery.blocks = true;
  MakeWholeEpoch(stream, {});
}

TEST(Pipeline, FillsThePaddingOfTheLastBatchWithZeros) {
  FakeStream stream(Tail::kPad, false, kUnevenBatch);
  ASSERT_NE(stream.geometry.patches_per_epoch % kUnevenBatch, 0u) << "there is padding";
  const std::uint64_t last = BatchesPerEpoch(stream.geometry) - 1;
  ASSERT_EQ(PatchesInBatch(stream.geometry, last), kUnevenBatch);
  MakeWholeEpoch(stream, {});
}

template <typename Value>
Value At(const FakeDelivery::Delivered& shard, std::size_t array, std::size_t index) {
  Value value{};
  const std::vector<std::byte>& bytes = shard.arrays.at(array);
  PB_CHECK((index + 1) * sizeof(value) <= bytes.size());
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

/// Every patch's meta arrays match the spec that the plan derives for its ordinal.
void ExpectMeta(FakeStream& stream, bool wraps) {
  const auto context = stream.Context();
  ASSERT_EQ(context->layout().arrays.size(), 5u);
  MakeWholeEpoch(stream, {});
  const auto n = static_cast<std::int64_t>(stream.geometry.patches_per_epoch);
  for (const auto& shard : stream.delivery.delivered()) {
    const PatchRun run = ShardRun(stream.geometry, shard.shard.batch, 0, shard.shard.shard);
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const auto spec = context->plan().DeriveSpec(0, run.first_ordinal + i);
      ASSERT_TRUE(spec.ok()) << spec.status();
      const auto ordinal = static_cast<std::int64_t>(run.first_ordinal + i);
      const Box box = spec->pad ? Box{0, 0, 0, 0, 0, 0} : spec->box;
      EXPECT_EQ(At<std::int64_t>(shard, 1, i), ordinal < n ? ordinal : wraps ? ordinal - n : -1);
      EXPECT_EQ(At<std::int32_t>(shard, 2, i), spec->pad ? -1 : 0);
      EXPECT_EQ(At<std::int32_t>(shard, 3, i), spec->pad ? -1 : spec->level);
      const std::array<std::int64_t, 6> expected = {box.z,     box.y,      box.x,
                                                    box.depth, box.height, box.width};
      EXPECT_EQ((At<std::array<std::int64_t, 6>>(shard, 4, i)), expected) << ordinal;
    }
  }
}

TEST(Pipeline, SaysOfEveryPatchWhereItCameFrom) {
  FakeStream stream(Tail::kPad, true, kUnevenBatch);
  ASSERT_NE(stream.geometry.patches_per_epoch % kUnevenBatch, 0u) << "there is padding";
  ExpectMeta(stream, false);
}

TEST(Pipeline, SaysWhichPatchesAWrappedTailUsesAgain) {
  FakeStream stream(Tail::kWrap, true, kUnevenBatch);
  ExpectMeta(stream, true);
}

TEST(Pipeline, ReadsTheNextShardWhileThisOneIsComputed) {
  FakeStream stream;
  Event decode_may_go_on, next_was_read;
  const protocol::ShardLease first = stream.Lease(0, 0), second = stream.Lease(0, 1);
  std::atomic<std::uint32_t> fetched{0};
  stream.hooks.on_fetch = [&](const Box&) {
    if (++fetched > first.grant.count) next_was_read.Set();
    return absl::OkStatus();
  };
  stream.hooks.on_decode = [&](const Box&) {
    decode_may_go_on.Wait();
    return absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  ASSERT_TRUE((*pipeline)->Submit(context, first).ok());
  ASSERT_TRUE((*pipeline)->Submit(context, second).ok());
  next_was_read.Wait();  // hangs if reading waited for computing
  EXPECT_EQ(stream.endings.count(), 0u);
  decode_may_go_on.Set();
  EXPECT_TRUE(stream.endings.WaitFor(second.lease).ok());
}

constexpr std::uint32_t kShardsOfABatch = 6;

void SubmitFirstBatch(FakeStream& stream, const std::shared_ptr<StreamContext>& context,
                      Pipeline& pipeline) {
  for (std::uint32_t shard = 0; shard < kShardsOfABatch; ++shard) {
    ASSERT_TRUE(pipeline.Submit(context, stream.Lease(0, shard)).ok());
  }
}

void ExpectFirstBatchMade(FakeStream& stream) {
  for (std::uint32_t shard = 0; shard < kShardsOfABatch; ++shard) {
    EXPECT_TRUE(stream.endings.WaitFor(stream.Lease(0, shard).lease).ok());
  }
}

TEST(Pipeline, ReadsNoFurtherAheadThanItsLimit) {
  FakeStream stream;
  PipelineOptions options;
  options.fetched_patches_max = 3;
  Event decode_may_go_on, limit_reached;
  std::atomic<std::uint32_t> fetched{0};
  std::atomic<bool> decoding_blocked{true}, read_too_far{false};
  stream.hooks.on_fetch = [&](const Box&) {
    const std::uint32_t count = ++fetched;
    if (count == 3) limit_reached.Set();
    if (count > 3 && decoding_blocked) read_too_far = true;
    return absl::OkStatus();
  };
  stream.hooks.on_decode = [&](const Box&) {
    decode_may_go_on.Wait();
    return absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start(options);
  SubmitFirstBatch(stream, context, **pipeline);
  limit_reached.Wait();
  // The reader has every chance to run on: nothing but the limit holds it.
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(fetched.load(), 3u);
  decoding_blocked = false;
  decode_may_go_on.Set();
  ExpectFirstBatchMade(stream);
  EXPECT_FALSE(read_too_far);
}

TEST(Pipeline, HoldsNoMoreBytesThanItsLimitAndOnePatch) {
  FakeStream stream;
  stream.hooks.encoded_bytes = 1000;
  PipelineOptions options;
  options.fetched_bytes_max = 2500;
  Event decode_may_go_on, limit_reached;
  std::atomic<int> read{0}, made{0}, most_held{0};
  stream.hooks.on_fetch = [&](const Box&) {
    const int held = ++read - made;
    if (held > most_held) most_held = held;
    if (held == 3) limit_reached.Set();
    return absl::OkStatus();
  };
  stream.hooks.on_decode = [&](const Box&) {
    decode_may_go_on.Wait();
    ++made;
    return absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start(options);
  SubmitFirstBatch(stream, context, **pipeline);
  limit_reached.Wait();
  // The reader has every chance to run on: nothing but the bytes hold it.
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_EQ(read, 3);
  decode_may_go_on.Set();
  ExpectFirstBatchMade(stream);
  EXPECT_EQ(most_held, 3);
}

TEST(Pipeline, APatchLargerThanTheLimitIsMadeAlone) {
  FakeStream stream;
  stream.hooks.encoded_bytes = 1000;
  PipelineOptions options;
  options.fetched_bytes_max = 10;
  std::atomic<int> held{0}, most_held{0};
  stream.hooks.on_fetch = [&](const Box&) {
    most_held = std::max(most_held.load(), ++held);
    return absl::OkStatus();
  };
  stream.hooks.on_decode = [&](const Box&) {
    --held;
    return absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start(options);
  SubmitFirstBatch(stream, context, **pipeline);
  ExpectFirstBatchMade(stream);
  EXPECT_EQ(most_held, 1);
}

TEST(Pipeline, ProgressMovesWithEveryPieceOfAPatchAlsoOfShardsThatWait) {
  FakeStream stream;
  stream.hooks.pieces = 5;
  const protocol::ShardLease first = stream.Lease(0, 0), second = stream.Lease(0, 1);
  Pipeline* running = nullptr;
  Event both_are_there;
  std::vector<std::uint64_t> of_first, of_second;
  stream.hooks.on_fetch = [&](const Box&) {
    both_are_there.Wait();
    if (of_first.size() < 5) {
      of_first.push_back(running->ProgressOf(first.lease));
      of_second.push_back(running->ProgressOf(second.lease));
    }
    return absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  running = pipeline->get();
  ASSERT_TRUE((*pipeline)->Submit(context, first).ok());
  ASSERT_TRUE((*pipeline)->Submit(context, second).ok());
  both_are_there.Set();
  EXPECT_TRUE(stream.endings.WaitFor(second.lease).ok());
  for (std::size_t piece = 1; piece < 5; ++piece) {
    EXPECT_GT(of_first[piece], of_first[piece - 1]) << piece;
    EXPECT_GT(of_second[piece], of_second[piece - 1]) << piece;
  }
}

TEST(Pipeline, ARevokedShardReadsNoFurtherPieceOfItsPatch) {
  FakeStream stream;
  stream.hooks.pieces = 100;
  const protocol::ShardLease lease = stream.Lease(0, 0);
  Pipeline* running = nullptr;
  Event started;
  std::atomic<int> pieces{0};
  stream.hooks.on_fetch = [&](const Box&) {
    started.Wait();
    if (++pieces == 3) running->Revoke(lease.lease);
    return absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  running = pipeline->get();
  ASSERT_TRUE((*pipeline)->Submit(context, lease).ok());
  started.Set();
  EXPECT_TRUE(absl::IsCancelled(stream.endings.WaitFor(lease.lease)));
  EXPECT_EQ(pieces, 3);
}

/// A stage that computes for that long.
Status BusyFor(std::int64_t ns) {
  const std::int64_t until_ns = SteadyNowNs() + ns;
  while (SteadyNowNs() < until_ns) continue;
  return absl::OkStatus();
}

TEST(Pipeline, SaysWithAShardWhatItsStagesTook) {
  constexpr std::int64_t kFetchNs = 200'000, kDecodeNs = 600'000;
  FakeStream stream;
  stream.hooks.on_fetch = [](const Box&) { return BusyFor(kFetchNs); };
  stream.hooks.on_decode = [](const Box&) { return BusyFor(kDecodeNs); };
  const auto lease = stream.Lease(0, 0);
  auto pipeline = stream.Start();
  const std::int64_t begun_ns = SteadyNowNs();
  ASSERT_TRUE((*pipeline)->Submit(stream.Context(), lease).ok());
  ASSERT_TRUE(stream.endings.WaitFor(lease.lease).ok());
  const auto spent_us = static_cast<std::uint64_t>((SteadyNowNs() - begun_ns) / 1000);
  const StageTimes times = stream.delivery.delivered().front().times;
  EXPECT_GE(times.storage_us, kFetchNs / 1000 * lease.grant.count);
  EXPECT_GE(times.decode_us, kDecodeNs / 1000 * lease.grant.count);
  EXPECT_LE(std::uint64_t{times.decode_us} + times.transform_us, spent_us) << "of one thread";
  EXPECT_EQ(times.transfer_us, 0u);
}

/// Uses the processor for that long, whatever else runs on the machine.
Status SpendCpu(std::int64_t ns) {
  const WorkMeter meter;
  while (meter.Read().cpu_ns < ns) continue;
  return absl::OkStatus();
}

TEST(Pipeline, SaysWithAShardWhatItCost) {
  constexpr std::int64_t kFetchNs = 1'000'000, kDecodeNs = 3'000'000;
  FakeStream stream;
  std::atomic<bool> cheap = true;
  stream.hooks.on_fetch = [&](const Box&) { return cheap ? absl::OkStatus() : SpendCpu(kFetchNs); };
  stream.hooks.on_decode = [&](const Box&) {
    return cheap ? absl::OkStatus() : SpendCpu(kDecodeNs);
  };
  const auto first = stream.Lease(0, 0), second = stream.Lease(0, 1);
  auto pipeline = stream.Start();
  const auto context = stream.Context();
  ASSERT_TRUE((*pipeline)->Submit(context, first).ok());
  ASSERT_TRUE(stream.endings.WaitFor(first.lease).ok());
  cheap = false;
  ASSERT_TRUE((*pipeline)->Submit(context, second).ok());
  ASSERT_TRUE(stream.endings.WaitFor(second.lease).ok());
  const protocol::WorkCost before = stream.endings.CostOf(first.lease);
  const protocol::WorkCost cost = stream.endings.CostOf(second.lease);
  EXPECT_GE(cost.cpu_us, (kFetchNs + kDecodeNs) / 1000 * second.grant.count);
  EXPECT_LT(before.cpu_us, kDecodeNs / 1000 * first.grant.count)
      << "the other shard's is not in it";
  EXPECT_EQ(cost.bytes_delivered, second.grant.count * context->layout().PatchBytes());
  EXPECT_EQ(cost.gpu_us, 0);
}

TEST(Pipeline, ChargesAFailedShardForItsWorkAndNoDelivery) {
  FakeStream stream;
  stream.hooks.on_decode = [](const Box&) -> Status {
    (void)SpendCpu(2'000'000);
    return absl::InvalidArgumentError("decode tile: bad");
  };
  const auto lease = stream.Lease(0, 0);
  auto pipeline = stream.Start();
  ASSERT_TRUE((*pipeline)->Submit(stream.Context(), lease).ok());
  ASSERT_FALSE(stream.endings.WaitFor(lease.lease).ok());
  const protocol::WorkCost cost = stream.endings.CostOf(lease.lease);
  EXPECT_GE(cost.cpu_us, 2'000);
  EXPECT_EQ(cost.bytes_delivered, 0u);
}

TEST(ShardWork, KeepsTheFirstFailureOfItsPatches) {
  protocol::ShardLease lease;
  lease.grant.count = 3;
  ShardWork work(nullptr, lease);
  EXPECT_FALSE(work.EndPatch(absl::DataLossError("the first")));
  EXPECT_FALSE(work.Wanted());
  EXPECT_FALSE(work.EndPatch(absl::UnavailableError("the second")));
  EXPECT_TRUE(work.EndPatch(absl::OkStatus()));
  work.Revoke();
  EXPECT_EQ(work.Outcome(), absl::DataLossError("the first"));
}

TEST(Pipeline, ReportsBadInputOnceAndMakesTheOtherShards) {
  FakeStream stream;
  std::optional<Box> bad;  // the first patch: one thread decodes
  stream.hooks.on_decode = [&](const Box& box) -> Status {
    if (!bad) bad = box;
    return box.y == bad->y && box.x == bad->x
               ? absl::DataLossError("decode tile: level 0 row 1 column 2: bad code")
               : absl::OkStatus();
  };
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(0, 0)).ok());
  ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(0, 1)).ok());
  const Status first = stream.endings.WaitFor(stream.Lease(0, 0).lease);
  EXPECT_EQ(first.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(MessageOf(first), "image 0: decode tile: level 0 row 1 column 2: bad code");
  EXPECT_TRUE(stream.endings.WaitFor(stream.Lease(0, 1).lease).ok());
  EXPECT_EQ(stream.delivery.delivered().size(), 1u);
}

TEST(Pipeline, APatchOfDamagedBytesIsReadOnceMoreFromWhatLiesThereNow) {
  FakeStream stream;
  std::atomic<int> opened{0}, decoded{0};
  stream.open_image = [&] {
    ++opened;
    return std::make_unique<FakeImage>(stream.hooks);
  };
  stream.hooks.on_decode = [&](const Box&) {
    return ++decoded == 2 ? absl::DataLossError("decode: damaged") : absl::OkStatus();
  };
  const auto context = stream.Context();
  const protocol::ShardLease lease = stream.Lease(0, 0);
  ASSERT_GT(lease.grant.count, 1u);
  auto pipeline = stream.Start();
  ASSERT_TRUE((*pipeline)->Submit(context, lease).ok());
  EXPECT_TRUE(stream.endings.WaitFor(lease.lease).ok());
  EXPECT_EQ(opened, 2);
  EXPECT_EQ(decoded, static_cast<int>(lease.grant.count) + 1);
  const auto delivered = stream.delivery.delivered();
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered[0].bytes, stream.Expected(*context, lease));
}

TEST(Pipeline, APatchWhoseBytesStayDamagedFailsItsShardOnce) {
  FakeStream stream;
  std::atomic<int> decoded{0};
  stream.hooks.on_decode = [&](const Box&) {
    ++decoded;
    return absl::DataLossError("decode: damaged");
  };
  protocol::ShardLease lease = stream.Lease(0, 0);
  lease.grant.count = 1;
  auto pipeline = stream.Start();
  ASSERT_TRUE((*pipeline)->Submit(stream.Context(), lease).ok());
  EXPECT_TRUE(absl::IsDataLoss(stream.endings.WaitFor(lease.lease)));
  EXPECT_EQ(decoded, 2);
}

TEST(Pipeline, APatchWhoseFileChangedIsReadOnceMoreIfTheFileStillHoldsWhatWasPlanned) {
  for (const char* content : {"an image", "AN IMAGE"}) {
    FakeStream stream;
    const auto time = std::filesystem::last_write_time(stream.folder / "fake");
    std::ofstream(stream.folder / "fake") << content;
    std::filesystem::last_write_time(stream.folder / "fake", time);
    std::atomic<int> fetches{0}, opened{0};
    stream.open_image = [&] {
      ++opened;
      return std::make_unique<FakeImage>(stream.hooks);
    };
    stream.hooks.on_fetch = [&](const Box&) {
      return ++fetches == 1 ? absl::AbortedError("read: its time of change is another")
                            : absl::OkStatus();
    };
    const auto context = stream.Context();
    const protocol::ShardLease lease = stream.Lease(0, 0);
    auto pipeline = stream.Start();
    ASSERT_TRUE((*pipeline)->Submit(context, lease).ok());
    const Status ended = stream.endings.WaitFor(lease.lease);
    if (content == std::string("an image")) {
      EXPECT_TRUE(ended.ok()) << ended;
      EXPECT_EQ(opened, 2);
      const auto delivered = stream.delivery.delivered();
      ASSERT_EQ(delivered.size(), 1u);
      EXPECT_EQ(delivered[0].bytes, stream.Expected(*context, lease));
    } else {
      EXPECT_TRUE(absl::IsDataLoss(ended)) << ended;
      EXPECT_NE(MessageOf(ended).find("image 0: it changed since it was planned"),
                std::string::npos)
          << ended;
      EXPECT_TRUE(stream.delivery.delivered().empty());
    }
  }
}

TEST(Pipeline, ReportsAFailedReadAndReadsNothingMoreOfThatShard) {
  FakeStream stream;
  std::atomic<int> fetches{0};
  stream.hooks.on_fetch = [&](const Box&) -> Status {
    ++fetches;
    return absl::DataLossError("read chunk: 0/c/0/1/2: crc32c mismatch");
  };
  protocol::ShardLease whole_batch = stream.Lease(0, 0);
  whole_batch.grant.count = RankRun(stream.geometry, 0, 0).count;
  auto pipeline = stream.Start();
  ASSERT_TRUE((*pipeline)->Submit(stream.Context(), whole_batch).ok());
  EXPECT_EQ(stream.endings.WaitFor(whole_batch.lease).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(fetches.load(), 2) << "the one patch, once more";
  EXPECT_TRUE(stream.delivery.delivered().empty());
}

TEST(Pipeline, APatchThatCannotBeMadeIsNoVoidAttempt) {
  for (const auto code :
       {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kAlreadyExists}) {
    FakeStream stream;
    stream.hooks.on_fetch = [&](const Box&) { return Status(code, "read: its labels are gone"); };
    auto pipeline = stream.Start();
    const protocol::ShardLease lease = stream.Lease(0, 0);
    ASSERT_TRUE((*pipeline)->Submit(stream.Context(), lease).ok());
    const Status ended = stream.endings.WaitFor(lease.lease);
    EXPECT_EQ(ended.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(MessageOf(ended), "image 0: read: its labels are gone");
  }
}

TEST(Pipeline, ReportsATrainerThatCannotBeReachedAsUnavailable) {
  FakeStream stream;
  stream.delivery.on_open = [](const protocol::ShardLease& lease) -> Status {
    return lease.shard.shard == 0 ? absl::UnavailableError("connect: nobody listens")
                                  : absl::OkStatus();
  };
  stream.delivery.on_deliver = [] { return absl::UnavailableError("report: the trainer is gone"); };
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  for (std::uint32_t shard : {0u, 1u}) {
    ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(0, shard)).ok());
    EXPECT_EQ(stream.endings.WaitFor(stream.Lease(0, shard).lease).code(),
              absl::StatusCode::kUnavailable);
  }
}

TEST(Pipeline, DropsAQueuedShardWhoseLeaseIsRevoked) {
  FakeStream stream;
  Event first_may_end, first_began;
  std::atomic<int> decoded{0};
  stream.hooks.on_decode = [&](const Box&) {
    if (decoded++ == 0) first_began.Set();
    first_may_end.Wait();
    return absl::OkStatus();
  };
  PipelineOptions options;
  options.fetched_patches_max = 1;
  const auto context = stream.Context();
  auto pipeline = stream.Start(options);
  const auto first = stream.Lease(0, 0), second = stream.Lease(0, 1);
  ASSERT_TRUE((*pipeline)->Submit(context, first).ok());
  ASSERT_TRUE((*pipeline)->Submit(context, second).ok());
  first_began.Wait();
  (*pipeline)->Revoke(second.lease);
  first_may_end.Set();
  EXPECT_EQ(stream.endings.WaitFor(second.lease).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(stream.endings.WaitFor(first.lease).ok());
  EXPECT_EQ(decoded.load(), static_cast<int>(first.grant.count));
}

TEST(Pipeline, StopsARevokedShardBetweenPatchesAndDoesNotDeliverIt) {
  FakeStream stream;
  protocol::ShardLease lease = stream.Lease(0, 0);
  lease.grant.count = RankRun(stream.geometry, 0, 0).count;
  Pipeline* running = nullptr;
  std::atomic<int> decoded{0};
  stream.hooks.on_decode = [&](const Box&) {
    if (++decoded == 2) running->Revoke(lease.lease);
    return absl::OkStatus();
  };
  auto pipeline = stream.Start();
  running = pipeline->get();
  ASSERT_TRUE((*pipeline)->Submit(stream.Context(), lease).ok());
  EXPECT_EQ(stream.endings.WaitFor(lease.lease).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(decoded.load(), 2);
  EXPECT_TRUE(stream.delivery.delivered().empty());
  EXPECT_EQ((*pipeline)->shards_held(), 0u);
}

TEST(Pipeline, EndsEverythingItHoldsWhenItIsDestroyed) {
  FakeStream stream;
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  for (std::uint64_t batch = 0; batch < 2; ++batch) {
    for (std::uint32_t shard = 0; shard < 6; ++shard) {
      ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(batch, shard)).ok());
    }
  }
  pipeline->reset();
  EXPECT_EQ(stream.endings.count(), 12u);
}

TEST(Pipeline, ProgressOfAWaitingShardMovesWithTheShardBeforeIt) {
  FakeStream stream;
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  const LeaseNumber unknown{7, 7};
  const std::uint64_t before = (*pipeline)->ProgressOf(unknown);
  ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(0, 0)).ok());
  EXPECT_TRUE(stream.endings.WaitFor(stream.Lease(0, 0).lease).ok());
  EXPECT_GE((*pipeline)->ProgressOf(unknown), before + stream.Lease(0, 0).grant.count);
}

TEST(Pipeline, RefusesGrantsThatDoNotFitTheStream) {
  FakeStream stream;
  const auto context = stream.Context();
  auto pipeline = stream.Start();
  const auto refused = [&](auto change) {
    protocol::ShardLease lease = stream.Lease(0, 0);
    change(lease);
    return (*pipeline)->Submit(context, lease).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](auto& lease) { lease.grant.count = kBatch + 1; }));
  EXPECT_TRUE(refused([](auto& lease) { lease.grant.count = ~0u; }));
  EXPECT_TRUE(refused([](auto& lease) { lease.grant.place = kBatch; }));
  EXPECT_TRUE(refused([](auto& lease) { lease.grant.count = 0; }));
  EXPECT_TRUE(refused([](auto& lease) { lease.stream = 8; }));
  EXPECT_EQ(stream.endings.count(), 0u);
}

TEST(Pipeline, RefusesMoreShardsThanItsLimitAndALeaseItHolds) {
  FakeStream stream;
  Event may_go_on;
  stream.hooks.on_decode = [&](const Box&) {
    may_go_on.Wait();
    return absl::OkStatus();
  };
  PipelineOptions options;
  options.shards_max = 2;
  const auto context = stream.Context();
  auto pipeline = stream.Start(options);
  ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(0, 0)).ok());
  EXPECT_EQ((*pipeline)->Submit(context, stream.Lease(0, 0)).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE((*pipeline)->Submit(context, stream.Lease(0, 1)).ok());
  EXPECT_EQ((*pipeline)->Submit(context, stream.Lease(0, 2)).code(),
            absl::StatusCode::kResourceExhausted);
  may_go_on.Set();
  EXPECT_TRUE(stream.endings.WaitFor(stream.Lease(0, 1).lease).ok());
}

TEST(Pipeline, RefusesOrdinalsPastTheEpoch) {
  FakeStream stream;
  auto pipeline = stream.Start();
  protocol::ShardLease lease = stream.Lease(0, 0);
  lease.first_ordinal = stream.geometry.patches_per_epoch;
  ASSERT_TRUE((*pipeline)->Submit(stream.Context(), lease).ok());
  EXPECT_EQ(stream.endings.WaitFor(lease.lease).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace patchbay::workers
