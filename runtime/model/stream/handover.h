// Memory that a trainer's process shares with the client process that owns its ring, in addition to
// the ring: one small sealed memfd of words that both wait on. Plain memory and futexes, so that
// the trainer's side needs the C library alone.
//
//   client   takes a batch from the stream, writes an entry, raises `ready`
//   trainer  waits on `ready`, takes the entry, raises `taken`; uses the slot; marks the entry
//            released, raises `released`
//   client   waits on `taken` for the next batch, and on `released` to give slots back
#pragma once

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace patchbay {

inline constexpr std::uint32_t kHandoverVersion = 5;
/// More than a ring has slots: batches of which this rank has no patches need an entry too.
inline constexpr std::uint32_t kHandoverEntries = 512;
inline constexpr std::size_t kHandoverErrorBytes = 16 << 10;

enum class EntryState : std::uint32_t {
  kFree,      ///< the client's
  kHeld,      ///< published; the trainer's
  kReleased,  ///< the client gives the slot back
};

/// One batch in the trainer's hands.
struct HandoverEntry {
  std::uint64_t batch = 0;
  std::uint64_t unit = 0, unit_patches = 0;  ///< the batch's, of a stream with units
  std::uint32_t epoch = 0;
  std::uint32_t slot = 0;               ///< slot of the ring; slot_layout.h has its offset
  std::uint32_t count = 0;              ///< patches of this rank
  std::uint32_t real_count = 0;         ///< patches before the padding
  std::uint32_t has_slot = 0;           ///< 0: this rank has no patches in the batch
  std::atomic<std::uint32_t> state{0};  ///< EntryState
};

/// Counters of the client, for the trainer's statistics.
struct HandoverCounters {
  std::atomic<std::uint64_t> shards_refused{0}, shards_corrupt{0}, batches_moved{0};
  std::atomic<std::uint64_t> remote_bytes{0};
  /// StageTotals: microseconds, and the patches they are of.
  std::atomic<std::uint64_t> storage_us{0}, decode_us{0}, transform_us{0}, transfer_us{0};
  std::atomic<std::uint64_t> stage_patches{0};
};

struct Handover {
  std::uint32_t version = kHandoverVersion;
  std::uint32_t entry_count = kHandoverEntries;
  alignas(64) std::atomic<std::uint32_t> ready{0};  ///< futex: a batch was published, or the end
  std::atomic<std::uint32_t> published{0};          ///< batches, ever
  std::atomic<std::uint32_t> failed{0};             ///< `error` has the reason; no further batches
  alignas(64) std::atomic<std::uint32_t> taken{0};  ///< futex: batches, ever
  alignas(64) std::atomic<std::uint32_t> released{0};  ///< futex: entries, ever
  alignas(64) HandoverCounters counters;
  std::uint32_t order[kHandoverEntries] = {};  ///< entry of publication n: order[n % entry_count]
  HandoverEntry entries[kHandoverEntries];
  /// JSON, which ends with a zero byte: {"code": of absl::StatusCode, "config": whether the cure is
  /// another config, "text", "subject": {"kind", "index", "part"}}, as in answers of serve-ring.
  char error[kHandoverErrorBytes] = {};
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

/// Waits until `word` is raised from `seen`, a signal comes, or the time is over. May return early.
inline void WaitOnWord(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                       std::int64_t timeout_ms) {
  const timespec limit{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000};
  (void)syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

/// Wakes all waiters on `word`, in any process.
inline void WakeWord(const std::atomic<std::uint32_t>& word) {
  (void)syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Adds one to `word` and wakes all its waiters.
inline void RaiseWord(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
  WakeWord(word);
}

}  // namespace patchbay
