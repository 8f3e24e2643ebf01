// The cost of delivery between nodes, beside its parts: AES-128-GCM alone, plain TCP alone,
// TLS and UCX into a ring, from 1, 2 and 8 senders. All over loopback and in one run, so that the
// ratios hold on a busy machine too.
//
//   build/release/bin/bench_remote
//   build/release/bin/bench_remote 2     TLS from two senders alone, for a profiler
#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <openssl/evp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/clock.h"
#include "runtime/wire/data/remote_delivery.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/sockets.h"

namespace patchbay::data {
namespace {

constexpr std::uint64_t kStream = 1;
constexpr std::uint32_t kShards = 8;  ///< shards of a batch: as many senders at once
constexpr std::uint32_t kSlots = 2;
constexpr std::size_t kShardBytes = 6 << 20;
constexpr std::size_t kRecordBytes = 16 << 10;
constexpr std::uint64_t kTotalBytes = std::uint64_t{1} << 30;
constexpr std::int64_t kPatience = 60'000;

template <typename T>
T OrDie(StatusOr<T> value) {
  if (value.ok()) return std::move(*value);
  std::fprintf(stderr, "%s\n", Describe(value.status()).c_str());
  std::abort();
}

StreamSecret Secret() {
  StreamSecret secret;
  secret.fill(std::byte{7});
  return secret;
}

Network Loopback(NetworkPolicy policy) {
  Network network;
  network.policy = policy;
  network.address = "127.0.0.1";
  network.rdma_over_tcp = true;
  return network;
}

/// One measurement: wall time, and the CPU time of all its processes.
struct Cost {
  double gigabytes_a_second = 0;
  double cpu_seconds_a_gigabyte = 0;
};

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Runs `trainer(out)` in a process of its own, which first says a line to `out`, and
/// `senders(line, in)` here, where `in` is the other end of `out`; kTotalBytes go from one to the
/// other. `out` has no reader any more once the senders are done.
template <typename Trainer, typename Senders>
Cost Measure(const Trainer& trainer, const Senders& senders) {
  std::array<int, 2> up{};
  if (pipe(up.data()) != 0) std::abort();
  const double own_before = CpuSeconds(RUSAGE_SELF), ended_before = CpuSeconds(RUSAGE_CHILDREN);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(up[0]);
    trainer(up[1]);
    _exit(0);
  }
  close(up[1]);
  std::string line;
  for (char c = 0; read(up[0], &c, 1) == 1 && c != '\n';) line.push_back(c);
  const std::int64_t start_ns = SteadyNowNs();
  senders(line, up[0]);
  close(up[0]);
  waitpid(pid, nullptr, 0);  // it ends once all is there
  const double seconds = 1e-9 * static_cast<double>(SteadyNowNs() - start_ns);
  const double cpu =
      CpuSeconds(RUSAGE_SELF) - own_before + CpuSeconds(RUSAGE_CHILDREN) - ended_before;
  const double gigabytes = 1e-9 * static_cast<double>(kTotalBytes);
  return {gigabytes / seconds, cpu / gigabytes};
}

void SayLine(int out, const std::string& line) {
  const std::string text = line + "\n";
  if (write(out, text.data(), text.size()) < 0) std::abort();
}

double AesGcmGigabytesASecond() {
  std::vector<unsigned char> plain(kRecordBytes, 3), sealed(kRecordBytes + 16);
  const std::array<unsigned char, 16> key{1};
  std::array<unsigned char, 12> nonce{};
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
  const std::int64_t start_ns = SteadyNowNs();
  for (std::uint64_t done = 0; done < kTotalBytes; done += kRecordBytes) {
    ++nonce[0];
    int size = 0;
    EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data());
    EVP_EncryptUpdate(context, sealed.data(), &size, plain.data(), static_cast<int>(kRecordBytes));
    EVP_EncryptFinal_ex(context, sealed.data() + size, &size);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, sealed.data() + kRecordBytes);
  }
  EVP_CIPHER_CTX_free(context);
  return static_cast<double>(kTotalBytes) / static_cast<double>(SteadyNowNs() - start_ns);
}

Cost PlainTcp() {
  const auto trainer = [](int out) {
    std::string address;
    const UniqueFd listener = OrDie(ListenTcp("127.0.0.1", {}, &address));
    SayLine(out, address);
    AwaitSocket(listener.get(), POLLIN, kNoDeadline).IgnoreError();
    const UniqueFd from = OrDie(AcceptTcp(listener.get()));
    std::vector<char> slot(kShardBytes);
    for (std::uint64_t done = 0; done < kTotalBytes;) {
      AwaitSocket(from.get(), POLLIN, kNoDeadline).IgnoreError();
      const ssize_t got = recv(from.get(), slot.data(), slot.size(), 0);
      if (got > 0) done += static_cast<std::uint64_t>(got);
    }
  };
  return Measure(trainer, [](const std::string& address, int) {
    const UniqueFd to = OrDie(ConnectTcp(address, SteadyNowMs() + kPatience));
    const std::vector<char> made(kRecordBytes, 3);
    for (std::uint64_t done = 0; done < kTotalBytes;) {
      const std::size_t piece = std::min<std::uint64_t>(made.size(), kTotalBytes - done);
      const ssize_t sent = send(to.get(), made.data(), piece, MSG_NOSIGNAL);
      if (sent > 0) done += static_cast<std::uint64_t>(sent);
      if (sent < 0) AwaitSocket(to.get(), POLLOUT, kNoDeadline).IgnoreError();
    }
  });
}

SlotTableOptions TableOptions() {
  SlotTableOptions o;
  o.stream = kStream;
  o.geometry.patches_per_epoch = std::uint64_t{1} << 40;
  o.geometry.global_batch = kShards;
  o.slots = kSlots;
  o.spares = 0;
  return o;
}

std::uint64_t Batches() { return kTotalBytes / (kShards * kShardBytes); }

[[noreturn]] void Train(NetworkPolicy policy, int out) {
  const SlotTableOptions options = TableOptions();
  const BatchLayout layout = {
      {{"image", DType::kUint8, {static_cast<std::int64_t>(kShardBytes)}, {}}}};
  const auto bytes =
      OrDie(RingBytesOf(OrDie(SlotLayout::Of(layout, kShards, false)), options.slots));
  auto ring = OrDie(Ring::Create(options, layout, OrDie(MakeHostRingMemory(bytes.host))));
  const auto receiver =
      OrDie(RemoteReceiver::Start(*ring, {Loopback(policy), Secret(), {kStream, 0, 1}}));
  SayLine(out, receiver->address());
  for (std::uint64_t i = 0; i < Batches(); ++i) {
    const TakenBatch batch = OrDie(ring->Next(kPatience));
    ring->Release(*batch.slot, batch.generation);
    SayLine(out, "");
  }
  pollfd senders{out, 0, 0};
  poll(&senders, 1, -1);  // the last of them still waits for its answer
  _exit(0);
}

/// Batches that the trainer has given back: senders wait for a free slot, as the scheduler grants
/// no other.
class FreeSlots {
 public:
  /// A byte comes from `in` for each batch.
  explicit FreeSlots(int in) : thread_([this, in] { Count(in); }) {}
  ~FreeSlots() { thread_.join(); }

  void Await(std::uint64_t batch) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return batch < released_ + kSlots; });
  }

 private:
  void Count(int in) {
    for (std::uint64_t i = 0; i < Batches(); ++i) {
      char c = 0;
      if (read(in, &c, 1) != 1) std::abort();
      const std::lock_guard lock(mu_);
      ++released_;
      changed_.notify_all();
    }
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::uint64_t released_ = 0;  ///< guarded by mu_
  std::thread thread_;
};

/// Sends every `senders`-th shard.
void SendShards(NetworkPolicy policy, const std::string& address, FreeSlots& slots,
                std::uint32_t first, std::uint32_t senders) {
  const auto sender = OrDie(RemoteSender::Start({Loopback(policy), kPatience}));
  const std::vector<std::byte> made(kShardBytes, std::byte{3});
  const std::array payload = {std::span<const std::byte>(made)};
  for (std::uint64_t batch = 0; batch < Batches(); ++batch) {
    slots.Await(batch);
    for (std::uint32_t shard = first; shard < kShards; shard += senders) {
      ShardHeader h;
      h.stream = kStream;
      h.shard = ShardId{0, batch, 0, shard};
      h.grant = Grant{static_cast<std::uint32_t>(batch % kSlots), batch / kSlots + 1, shard, 1};
      h.lease = LeaseNumber{1, batch * kShards + shard + 1};
      const Status sent = sender->Send({address, Secret(), kStream, 0}, h, payload);
      if (!sent.ok()) OrDie(StatusOr<int>(sent));
    }
  }
}

Cost Remote(NetworkPolicy policy, std::uint32_t senders) {
  return Measure(
      [policy](int out) { Train(policy, out); },
      [policy, senders](const std::string& address, int in) {
        FreeSlots slots(in);
        std::vector<std::thread> threads;
        for (std::uint32_t i = 0; i < senders; ++i) {
          threads.emplace_back([&, i] { SendShards(policy, address, slots, i, senders); });
        }
        for (std::thread& thread : threads) thread.join();
      });
}

void Report(const char* name, const Cost& cost, double bound) {
  std::printf("%-28s %6.2f GB/s   %5.2f CPU s/GB   %4.2f of the bound\n", name,
              cost.gigabytes_a_second, cost.cpu_seconds_a_gigabyte,
              cost.gigabytes_a_second / bound);
}

int RunTls(std::uint32_t senders) {
  if (senders == 0 || senders > kShards) {
    std::fprintf(stderr, "bench_remote: expected 1 to %u senders\n", kShards);
    return 2;
  }
  const Cost cost = Remote(NetworkPolicy::kTls, senders);
  std::printf("TLS, %u sender(s) %6.2f GB/s   %5.2f CPU s/GB\n", senders, cost.gigabytes_a_second,
              cost.cpu_seconds_a_gigabyte);
  return 0;
}

int Run() {
  const double aes = AesGcmGigabytesASecond();
  const Cost tcp = PlainTcp();
  const double bound = 1 / (1 / aes + 1 / tcp.gigabytes_a_second);
  std::printf("%-28s %6.2f GB/s\n", "AES-128-GCM, 16 KiB records", aes);
  Report("plain TCP", tcp, bound);
  std::printf("%-28s %6.2f GB/s   goal: 0.8 of it\n", "bound 1/(1/AES + 1/TCP)", bound);
  for (const std::uint32_t senders : {1u, 2u, 8u}) {
    Report(StrCat("TLS, ", senders, " sender(s)").c_str(), Remote(NetworkPolicy::kTls, senders),
           bound);
  }
  Report("UCX over TCP, 1 sender", Remote(NetworkPolicy::kRdma, 1), bound);
  return 0;
}

}  // namespace
}  // namespace patchbay::data

int main(int argc, char** argv) {
  if (argc < 2) return patchbay::data::Run();
  return patchbay::data::RunTls(static_cast<std::uint32_t>(std::atoi(argv[1])));
}
