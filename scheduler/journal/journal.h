// The scheduler's memory across restarts: an append-only list of records and at most one snapshot,
// in one encrypted SQLite file. scheduler/state defines the records.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/os/file.h"
#include "scheduler/core/core.h"

namespace patchbay::scheduler {

/// The file `JOURNAL.mark`: the last sequence that was durable, as decimal digits. It is written
/// after the records, without waiting for the disk, so it never names a record that was not
/// durable; after a power cut it may name an earlier one. A journal that ends before its mark has
/// lost records: its write-ahead log was cut, or one of its files was removed or put back from an
/// older copy. Used by the journal alone, by one thread at a time.
class HighMark {
 public:
  /// Opens or creates it, mode 0600. DataLoss when it holds anything else than a mark.
  static StatusOr<HighMark> Open(const std::string& path);

  /// The sequence of the last Set, also by another process; 0 = nothing was durable yet.
  std::uint64_t sequence() const { return sequence_; }
  Status Set(std::uint64_t sequence);
  const std::string& path() const { return path_; }

 private:
  HighMark(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd file_;
  std::uint64_t sequence_ = 0;
};

/// The place of the journal, its secret and the size it may grow to.
struct JournalOptions {
  std::string path;    ///< path of the database; its folder must exist, owner-only
  std::string secret;  ///< only who has it reads the file: the server's secret key
  /// The file may grow to this. Larger means more room between compactions; when it is reached
  /// appends fail with ResourceExhausted as on a full disk.
  std::uint64_t file_bytes_max = 8ull << 30;
  /// Records waiting for the writer thread; Append blocks beyond it.
  std::size_t queue_records_max = 1u << 16;
};

/// One process, one connection. Open and Replay on one thread; then Start; then Append and Compact
/// from one thread. A write that fails is final: nothing is acknowledged after it.
class Journal {
 public:
  /// A call from the writer thread: OK and the last sequence on disk, or once the error that
  /// stopped the journal.
  using OnDurable = std::function<void(const Status& status, std::uint64_t sequence)>;

  /// Creates or opens the file (mode 0600), checks its integrity, takes the lock. Unimplemented on
  /// a network file system, DataLoss when damaged, Unavailable when another process has it,
  /// FailedPrecondition when it is sealed with another secret or of a later version.
  static StatusOr<std::unique_ptr<Journal>> Open(const JournalOptions& options);
  /// Writes queued records, then closes.
  ~Journal();

  /// The snapshot (if any) and every record after it, in order; then core.last_sequence() is the
  /// journal's. A journal that ends before its mark (see HighMark) is replayed to its end;
  /// records_lost() is then the number of missing records, and the core gives none of their numbers
  /// again. DataLoss when no record is left.
  Status ReplayInto(Core& core);
  /// Valid after ReplayInto; the server tells the user, and compacts so that it is not forgotten.
  std::uint64_t records_lost() const;

  void Start(OnDurable on_durable);
  /// Takes the records over; returns at once unless the queue is full. Sequences must follow.
  void Append(std::vector<JournalRecord> records);
  /// Replaces all records up to `sequence` by the snapshot, once all records appended before are
  /// written.
  void Compact(std::uint64_t sequence, std::string snapshot);
  /// Bytes of records that the writer has not written yet.
  std::uint64_t waiting_bytes() const;
  std::uint64_t records_since_snapshot() const;
  /// Whether to compact: these are many (see kCompactRecords), or one drops what others hold,
  /// which the files then no longer have.
  bool WantsCompaction() const;

 private:
  struct Store;
  explicit Journal(std::unique_ptr<Store> store);
  std::unique_ptr<Store> store_;
};

/// Records after which the server compacts the journal.
inline constexpr std::uint64_t kCompactRecords = 500'000;

}  // namespace patchbay::scheduler
