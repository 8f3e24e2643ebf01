// A small stream for the tests of rings and delivery: 3 batches an epoch, 2 shards a batch.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "runtime/core/clock.h"
#include "runtime/wire/data/ring.h"
#include "runtime/wire/data/ring_memory.h"
#include "runtime/wire/data/shard_header.h"
#include "runtime/wire/data/slot_table.h"
#include "runtime/wire/data/tls_channel.h"

namespace patchbay::data::testing {

inline constexpr std::uint64_t kStream = 77;
inline constexpr TrainerIdentity kTrainer{kStream, 0, 5};
inline constexpr std::int64_t kPatience = 20'000;  ///< ms; only a failing test waits this long

/// Waits for what another thread or process does: ASSERT_TRUE(Comes("a refusal", [&] { ... })).
template <typename Condition>
::testing::AssertionResult Comes(std::string_view what, const Condition& has_come) {
  const std::int64_t until_ns = SteadyNowNs() + kPatience * 1'000'000;
  while (!has_come()) {
    if (SteadyNowNs() >= until_ns) {
      return ::testing::AssertionFailure() << "in " << kPatience / 1000 << " s came no " << what;
    }
    std::this_thread::yield();
  }
  return ::testing::AssertionSuccess();
}

inline constexpr std::int64_t kImageBytes = 1000;  ///< bytes of a patch

/// An image and, always in host memory, an ordinal: two arrays of very different size.
inline BatchLayout SmallLayout(std::int64_t image_bytes = kImageBytes) {
  return {{{"image", DType::kUint8, {image_bytes}, ArrayMemory::kStream},
           {"ordinal", DType::kInt64, {}, ArrayMemory::kHost}}};
}

inline StreamGeometry SmallGeometry() {
  StreamGeometry g;
  g.patches_per_epoch = 11;
  g.global_batch = 4;
  g.shard_patches = 2;
  return g;
}

inline SlotTableOptions SmallOptions() {
  SlotTableOptions o;
  o.stream = kStream;
  o.geometry = SmallGeometry();
  o.slots = 3;
  o.spares = 1;
  return o;
}

inline StreamSecret SecretOf(std::uint8_t seed) {
  StreamSecret secret;
  secret.fill(std::byte{seed});
  return secret;
}

inline ShardHeader HeaderOf(Position at, std::uint32_t shard, std::uint32_t slot,
                            std::uint64_t generation, std::uint64_t lease,
                            const StreamGeometry& g = SmallGeometry()) {
  ShardHeader h;
  h.stream = kStream;
  h.shard = ShardId{at.epoch, at.batch, 0, shard};
  const PatchRun run = ShardRun(g, at.batch, 0, shard);
  h.grant = Grant{slot, generation, run.place, run.count};
  h.arrays = static_cast<std::uint8_t>(SmallLayout().arrays.size());
  h.lease = LeaseNumber{1, lease};
  return h;
}

inline std::unique_ptr<Ring> MakeRing(const SlotTableOptions& options,
                                      const BatchLayout& layout = SmallLayout()) {
  const auto slot = SlotLayout::Of(layout, Capacity(options.geometry), false);
  const auto bytes = RingBytesOf(*slot, options.slots + options.spares);
  auto memory = MakeHostRingMemory(bytes->host);
  EXPECT_TRUE(memory.ok()) << memory.status();
  auto ring = Ring::Create(options, layout, std::move(*memory));
  EXPECT_TRUE(ring.ok()) << ring.status();
  return std::move(*ring);
}

/// Fills a shard's ranges, one an array.
inline void FillAll(const std::vector<std::span<std::byte>>& window, std::byte value) {
  for (const std::span<std::byte> range : window) std::fill(range.begin(), range.end(), value);
}

/// Whether patches [place, place + count) of the batch have that byte everywhere, in every array.
inline bool PatchesAre(const TakenBatch& batch, std::uint32_t place, std::uint32_t count, int value,
                       const BatchLayout& layout = SmallLayout()) {
  for (std::size_t i = 0; i < layout.arrays.size(); ++i) {
    const std::uint64_t bytes = layout.arrays[i].PatchBytes();
    const std::byte* const begin = batch.arrays[i] + place * bytes;
    if (!std::all_of(begin, begin + count * bytes,
                     [value](std::byte b) { return b == std::byte(value); })) {
      return false;
    }
  }
  return true;
}
inline bool AllPatchesAre(const TakenBatch& batch, int value,
                          const BatchLayout& layout = SmallLayout()) {
  return PatchesAre(batch, 0, batch.patches, value, layout);
}

/// A forked process that runs `body` and exits with its return value. Killed by the destructor.
/// Fork before the parent starts threads, which the child would not have.
class ChildProcess {
 public:
  /// `body(in, out)`: reads what Tell writes, writes what Hear reads.
  explicit ChildProcess(const std::function<int(int in, int out)>& body) {
    std::array<int, 2> down{}, up{};
    EXPECT_EQ(pipe(down.data()), 0);
    EXPECT_EQ(pipe(up.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      alarm(60);
      close(down[1]);
      close(up[0]);
      _exit(body(down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    to_ = down[1];
    from_ = up[0];
  }
  ~ChildProcess() {
    if (pid_ > 0) Kill();
    close(to_);
    close(from_);
  }

  pid_t pid() const { return pid_; }
  /// Returns once it has stopped.
  void Stop() const {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void Continue() const { kill(pid_, SIGCONT); }
  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  /// The exit code of a child that ends by itself; 128 + signal otherwise.
  int Join() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  template <typename T>
  void Tell(const T& value) const {
    EXPECT_EQ(write(to_, &value, sizeof(value)), static_cast<ssize_t>(sizeof(value)));
  }
  void TellText(const std::string& text) const {
    Tell(text.size());
    EXPECT_EQ(write(to_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// The child's output up to a new line.
  std::string HearLine() const {
    std::string line;
    for (char c = Hear(); c != '\n' && c != '\0'; c = Hear()) line.push_back(c);
    return line;
  }
  /// Waits for one byte from the child; 0 when it is gone.
  char Hear() const {
    char c = 0;
    return read(from_, &c, 1) == 1 ? c : '\0';
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
};

/// The child's side of Tell.
template <typename T>
T Await(int in) {
  T value{};
  if (read(in, &value, sizeof(value)) != static_cast<ssize_t>(sizeof(value))) _exit(90);
  return value;
}
inline std::string AwaitText(int in) {
  std::string text(Await<std::size_t>(in), '\0');
  if (read(in, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(91);
  return text;
}
/// The child's side of Hear.
inline void Say(int out, char c) {
  if (write(out, &c, 1) != 1) _exit(92);
}

/// The child's side of HearLine.
inline void SayLine(int out, const std::string& line) {
  for (const char c : line) Say(out, c);
  Say(out, '\n');
}

}  // namespace patchbay::data::testing
