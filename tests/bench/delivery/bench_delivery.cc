// The cost of mapped delivery beyond writing the bytes. Worker and trainer are two processes.
// Between nodes: bench_remote.
//
//   build/release/bin/bench_delivery
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/wire/data/mapped_ring.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/ring_server.h"

namespace patchbay::data {
namespace {

constexpr std::uint64_t kStream = 1;
constexpr std::uint32_t kShards = 8;
constexpr std::int64_t kPatience = 30'000;

StreamSecret Secret() {
  StreamSecret secret;
  secret.fill(std::byte{7});
  return secret;
}

BatchLayout LayoutOf(std::uint64_t shard_bytes) {
  return {{{"image", DType::kUint8, {static_cast<std::int64_t>(shard_bytes)}, {}}}};
}

/// Batches of kShards shards of one patch each.
SlotTableOptions TableOptions() {
  SlotTableOptions o;
  o.stream = kStream;
  o.geometry.patches_per_epoch = std::uint64_t{1} << 40;
  o.geometry.global_batch = kShards;
  o.slots = 2;
  o.spares = 0;
  return o;
}

template <typename T>
T OrDie(StatusOr<T> value) {
  if (value.ok()) return std::move(*value);
  std::fprintf(stderr, "%s\n", Describe(value.status()).c_str());
  std::abort();
}

ShardHeader HeaderOf(std::uint64_t batch, std::uint32_t shard) {
  ShardHeader h;
  h.stream = kStream;
  h.shard = ShardId{0, batch, 0, shard};
  h.grant = Grant{static_cast<std::uint32_t>(batch % 2), batch / 2 + 1, shard, 1};
  h.lease = LeaseNumber{1, batch * kShards + shard + 1};
  return h;
}

/// A trainer in a process of its own: takes every batch and says a byte for each.
class TrainerProcess {
 public:
  explicit TrainerProcess(std::uint64_t shard_bytes) {
    int up[2];
    if (pipe(up) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Run(shard_bytes, up[1]);
    }
    close(up[1]);
    from_ = up[0];
    socket_ = Line();
  }
  ~TrainerProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(from_);
  }
  /// Returns once the trainer has taken a batch.
  void AwaitBatch() const {
    char c = 0;
    if (read(from_, &c, 1) != 1) std::abort();
  }
  const std::string& socket() const { return socket_; }

 private:
  [[noreturn]] static void Run(std::uint64_t shard_bytes, int out) {
    const SlotTableOptions options = TableOptions();
    const BatchLayout layout = LayoutOf(shard_bytes);
    const auto bytes =
        OrDie(RingBytesOf(OrDie(SlotLayout::Of(layout, kShards, false)), options.slots));
    auto ring = OrDie(Ring::Create(options, layout, OrDie(MakeHostRingMemory(bytes.host))));
    RingServer::Options server_options;
    server_options.secret = Secret();
    server_options.stream = kStream;
    const auto server = OrDie(RingServer::Start(*ring, server_options));
    const std::string lines = StrCat(server->socket_name(), "\n");
    if (write(out, lines.data(), lines.size()) < 0) std::abort();
    for (;;) {
      const TakenBatch batch = OrDie(ring->Next(-1));
      ring->Release(*batch.slot, batch.generation);
      if (write(out, "b", 1) != 1) _exit(0);
    }
  }
  std::string Line() const {
    std::string line;
    for (char c = 0; read(from_, &c, 1) == 1 && c != '\n';) line.push_back(c);
    return line;
  }

  pid_t pid_ = -1;
  int from_ = -1;
  std::string socket_;
};

/// Reports of shards that need no writing: the overhead of mapped delivery alone, up to the batch
/// being in the trainer's hands and its slot free again.
void MappedOverheadPerShard(benchmark::State& state) {
  constexpr std::uint64_t kShardBytes = 4096;
  const TrainerProcess trainer(kShardBytes);
  const auto ring = OrDie(MappedRing::Connect(
      {trainer.socket(), Secret(), kStream, 0, LayoutOf(kShardBytes), kShards, kPatience}));
  std::uint64_t batch = 0;
  for (auto _ : state) {
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      const ShardHeader header = HeaderOf(batch, shard);
      benchmark::DoNotOptimize(ring->Window(header.grant));
      if (!ring->ReportShardFinished(header).ok()) std::abort();
    }
    trainer.AwaitBatch();
    ++batch;
  }
  state.counters["seconds_per_shard"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kShards,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(MappedOverheadPerShard)->UseRealTime();

/// The same, one shard at a time and with its bytes copied into the slot.
void MappedWrite(benchmark::State& state) {
  const auto shard_bytes = static_cast<std::uint64_t>(state.range(0));
  const TrainerProcess trainer(shard_bytes);
  const auto ring = OrDie(MappedRing::Connect(
      {trainer.socket(), Secret(), kStream, 0, LayoutOf(shard_bytes), kShards, kPatience}));
  const std::vector<std::byte> made(shard_bytes, std::byte{3});
  std::uint64_t batch = 0;
  for (auto _ : state) {
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      const ShardHeader header = HeaderOf(batch, shard);
      std::memcpy(OrDie(ring->Window(header.grant))[0].data(), made.data(), made.size());
      if (!ring->ReportShardFinished(header).ok()) std::abort();
    }
    trainer.AwaitBatch();
    ++batch;
  }
  state.SetBytesProcessed(state.iterations() * kShards * state.range(0));
}
BENCHMARK(MappedWrite)->Arg(1 << 20)->Arg(6 << 20)->UseRealTime();

void Checksum(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{3});
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Checksum)->Arg(6 << 20);

}  // namespace
}  // namespace patchbay::data

BENCHMARK_MAIN();
