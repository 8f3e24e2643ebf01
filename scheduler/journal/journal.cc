#include "scheduler/journal/journal.h"

#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/core/hash.h"
#include "scheduler/journal/database.h"

namespace patchbay::scheduler {
namespace {

constexpr int kDigits = 20;  // digits of the largest 64-bit number
constexpr std::size_t kFileBytes = kDigits + 1;

Status Damaged(const std::string& path) {
  return DataLoss("open journal: ", path,
                  ": damaged: remove it to start with what the journal itself holds");
}

/// Records of one transaction at most: bounds how long an acknowledgement waits behind others.
constexpr std::size_t kGroupRecords = 8192;

struct Snapshot {
  std::uint64_t sequence = 0;
  std::string bytes;
  bool erases = false;  ///< the pages of records and pieces that go are overwritten
};

std::uint64_t BytesOf(const std::deque<JournalRecord>& group) {
  std::uint64_t bytes = 0;
  for (const JournalRecord& record : group) bytes += record.bytes.size();
  return bytes;
}

}  // namespace

StatusOr<HighMark> HighMark::Open(const std::string& path) {
  PB_ASSIGN_OR_RETURN(UniqueFd file,
                      OpenFile(Folders::OfThisProcess(), path, O_RDWR | O_CREAT, 0600));
  HighMark mark(path, std::move(file));
  const auto text = ReadFile(Folders::OfThisProcess(), path, kFileBytes);
  if (!text.ok()) return absl::IsInvalidArgument(text.status()) ? Damaged(path) : text.status();
  if (text->empty()) return mark;
  const char* const end = text->data() + kDigits;
  const auto parsed = text->size() == kFileBytes
                          ? std::from_chars(text->data(), end, mark.sequence_)
                          : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (parsed.ec != std::errc() || parsed.ptr != end || text->back() != '\n') return Damaged(path);
  return mark;
}

Status HighMark::Set(std::uint64_t sequence) {
  char text[kFileBytes + 1];
  std::snprintf(text, sizeof(text), "%0*llu\n", kDigits, static_cast<unsigned long long>(sequence));
  PB_RETURN_IF_ERROR(WriteAt(file_.get(), 0, AsBytes(std::string_view(text, kFileBytes)), path_));
  sequence_ = sequence;
  return absl::OkStatus();
}

struct Journal::Store {
  JournalOptions options;
  std::unique_ptr<Database> database;
  std::optional<HighMark> mark;
  std::uint64_t records_lost = 0;
  OnDurable on_durable;
  std::atomic<std::uint64_t> since_snapshot{0}, waiting_bytes{0};
  bool wants_erasure = false;  ///< a record since the last snapshot does; of the caller's thread
  std::thread writer;

  std::mutex mu;  // guards everything below
  std::condition_variable changed;
  std::deque<JournalRecord> queue;
  std::deque<Snapshot> snapshots;
  bool stopping = false;
  bool failed = false;

  void Write();
  Status WriteGroup(const std::deque<JournalRecord>& group);
  Status WriteSnapshot(const Snapshot& snapshot);
  bool NextGroup(std::deque<JournalRecord>& group, std::deque<Snapshot>& snapshot);
};

Journal::Journal(std::unique_ptr<Store> store) : store_(std::move(store)) {}

StatusOr<std::unique_ptr<Journal>> Journal::Open(const JournalOptions& options) {
  auto store = std::make_unique<Store>();
  store->options = options;
  PB_ASSIGN_OR_RETURN(store->database,
                      Database::Open(options.path, options.file_bytes_max, options.secret));
  PB_ASSIGN_OR_RETURN(store->mark, HighMark::Open(StrCat(options.path, ".mark")));
  return std::unique_ptr<Journal>(new Journal(std::move(store)));
}

Journal::~Journal() {
  {
    const std::lock_guard<std::mutex> lock(store_->mu);
    store_->stopping = true;
  }
  store_->changed.notify_all();
  if (store_->writer.joinable()) store_->writer.join();
}

Status Journal::ReplayInto(Core& core) {
  PB_RETURN_IF_ERROR(
      store_->database->ReadSnapshot([&](std::uint64_t sequence, std::string_view bytes) {
        return core.LoadSnapshot(sequence, bytes);
      }));
  std::uint64_t count = 0;
  PB_RETURN_IF_ERROR(
      store_->database->ReadRecords([&](std::uint64_t sequence, std::string_view bytes) {
        ++count;
        store_->wants_erasure = store_->wants_erasure || AsksForErasure(bytes);
        return core.Replay(sequence, bytes);
      }));
  store_->since_snapshot = count;
  const std::uint64_t marked = store_->mark->sequence(), last = core.last_sequence();
  if (last >= marked) return absl::OkStatus();
  if (last == 0) {
    return DataLoss("open journal: ", store_->options.path, ": it holds nothing, but ", marked,
                    " records were written to it: put it and its -wal file back, or remove ",
                    store_->mark->path(), " to start without those jobs");
  }
  store_->records_lost = marked - last;
  core.SkipLost(store_->records_lost);
  return absl::OkStatus();
}

std::uint64_t Journal::records_lost() const { return store_->records_lost; }

void Journal::Start(OnDurable on_durable) {
  store_->on_durable = std::move(on_durable);
  store_->writer = std::thread([store = store_.get()] { store->Write(); });
}

void Journal::Append(std::vector<JournalRecord> records) {
  if (records.empty()) return;
  std::unique_lock<std::mutex> lock(store_->mu);
  store_->changed.wait(lock, [&] {
    return store_->failed || store_->queue.size() < store_->options.queue_records_max;
  });
  if (store_->failed) return;
  for (JournalRecord& record : records) {
    store_->wants_erasure = store_->wants_erasure || AsksForErasure(record.bytes);
    store_->waiting_bytes += record.bytes.size();
    store_->queue.push_back(std::move(record));
  }
  lock.unlock();
  store_->changed.notify_all();
}

void Journal::Compact(std::uint64_t sequence, std::string snapshot) {
  store_->since_snapshot = 0;
  {
    const std::lock_guard<std::mutex> lock(store_->mu);
    if (store_->failed) return;
    store_->snapshots.push_back(
        {sequence, std::move(snapshot), std::exchange(store_->wants_erasure, false)});
  }
  store_->changed.notify_all();
}

std::uint64_t Journal::waiting_bytes() const { return store_->waiting_bytes; }

std::uint64_t Journal::records_since_snapshot() const { return store_->since_snapshot; }

bool Journal::WantsCompaction() const {
  return store_->wants_erasure || store_->since_snapshot >= kCompactRecords;
}

/// Waits for work. Returns records up to the next snapshot before the snapshot.
bool Journal::Store::NextGroup(std::deque<JournalRecord>& group, std::deque<Snapshot>& snapshot) {
  std::unique_lock<std::mutex> lock(mu);
  changed.wait(lock, [&] { return stopping || !queue.empty() || !snapshots.empty(); });
  while (!queue.empty() && group.size() < kGroupRecords) {
    if (!snapshots.empty() && queue.front().sequence > snapshots.front().sequence) break;
    group.push_back(std::move(queue.front()));
    queue.pop_front();
  }
  if (group.empty() && !snapshots.empty()) {
    snapshot.push_back(std::move(snapshots.front()));
    snapshots.pop_front();
  }
  changed.notify_all();
  return !group.empty() || !snapshot.empty();
}

Status Journal::Store::WriteGroup(const std::deque<JournalRecord>& group) {
  const bool is_alone = group.size() == 1;  // a transaction without statements around it
  if (!is_alone) PB_RETURN_IF_ERROR(database->Begin());
  for (const JournalRecord& record : group) {
    PB_RETURN_IF_ERROR(database->Insert(record.sequence, record.bytes));
  }
  if (!is_alone) PB_RETURN_IF_ERROR(database->Commit());
  PB_RETURN_IF_ERROR(mark->Set(group.back().sequence));
  since_snapshot += group.size();
  return absl::OkStatus();
}

Status Journal::Store::WriteSnapshot(const Snapshot& snapshot) {
  PB_RETURN_IF_ERROR(database->Overwrite(snapshot.erases));
  PB_RETURN_IF_ERROR(database->Begin());
  PB_RETURN_IF_ERROR(database->Replace(snapshot.sequence, snapshot.bytes));
  PB_RETURN_IF_ERROR(database->Commit());
  return database->Checkpoint();
}

/// The writer thread. The first error ends it: a failed sync may have lost data that the kernel
/// held, so later records could not be durable.
void Journal::Store::Write() {
  std::deque<JournalRecord> group;
  std::deque<Snapshot> snapshot;
  while (NextGroup(group, snapshot)) {
    const Status status = group.empty() ? WriteSnapshot(snapshot.front()) : WriteGroup(group);
    if (!status.ok()) {
      {
        const std::lock_guard<std::mutex> lock(mu);
        failed = true;
        queue.clear();
        snapshots.clear();
      }
      changed.notify_all();
      return on_durable(status, 0);
    }
    waiting_bytes -= BytesOf(group);
    if (!group.empty()) on_durable(status, group.back().sequence);
    group.clear();
    snapshot.clear();
  }
}

}  // namespace patchbay::scheduler
