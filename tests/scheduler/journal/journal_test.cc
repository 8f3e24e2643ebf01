#include "scheduler/journal/journal.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/state/records.h"

namespace {
std::atomic<int> syncs_before_failure{-1};  // -1 = never

int Sync(long number, int fd) {
  if (syncs_before_failure.load() < 0) return static_cast<int>(syscall(number, fd));
  if (syncs_before_failure.load() > 0) {
    --syncs_before_failure;
    return static_cast<int>(syscall(number, fd));
  }
  errno = EIO;
  return -1;
}
}  // namespace

// In place of the C library's: SQLite finds these.
extern "C" int fsync(int fd) { return Sync(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return Sync(SYS_fdatasync, fd); }

namespace patchbay::scheduler {
namespace {

/// Waits for sequences without a clock.
struct Durable {
  std::mutex mu;
  std::condition_variable changed;
  std::uint64_t sequence = 0;
  Status status;
  void Tell(const Status& told, std::uint64_t through) {
    const std::lock_guard<std::mutex> lock(mu);
    if (told.ok()) sequence = through;
    if (!told.ok()) status = told;
    changed.notify_all();
  }
  void WaitFor(std::uint64_t wanted) {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return sequence >= wanted || !status.ok(); });
  }
};

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/patchbay-journal-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder = name;
    options.path = folder + "/journal.db";
    options.secret = "the server's secret key";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static JournalRecord Submission(std::uint64_t sequence, std::size_t bytes = 10) {
    SubmitRecord submit;
    submit.job = sequence;
    submit.submission_key = std::to_string(sequence);
    submit.root.op = "op";
    submit.manifest = std::string(bytes, 'm');
    return {sequence, EncodeRecord({1, submit})};
  }
  void Write(std::uint64_t first, std::uint64_t last) {
    Durable durable;
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    for (std::uint64_t n = first; n <= last; ++n) (*journal)->Append({Submission(n)});
    durable.WaitFor(last);
    EXPECT_TRUE(durable.status.ok());
  }
  /// How many of the journal's files hold `text`.
  int FilesWith(const std::string& text) const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), {});
      if (bytes.find(text) != std::string::npos) ++count;
    }
    return count;
  }
  /// A record as it stands in the closed file.
  std::string BytesOf(std::uint64_t sequence) const {
    sqlite3* handle = nullptr;
    sqlite3_stmt* row = nullptr;
    std::string bytes;
    const std::string sql = StrCat("SELECT bytes FROM records WHERE sequence = ", sequence);
    if (sqlite3_open(options.path.c_str(), &handle) == SQLITE_OK &&
        sqlite3_prepare_v2(handle, sql.c_str(), -1, &row, nullptr) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW) {
      bytes.assign(static_cast<const char*>(sqlite3_column_blob(row, 0)),
                   static_cast<std::size_t>(sqlite3_column_bytes(row, 0)));
    }
    sqlite3_finalize(row);
    sqlite3_close(handle);
    return bytes;
  }
  std::string folder;
  JournalOptions options;
};

TEST_F(JournalTest, GivesBackWhatItSaidIsDurable) {
  Write(1, 300);
  Core core;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok());
  ASSERT_TRUE((*journal)->ReplayInto(core).ok());
  EXPECT_EQ(core.last_sequence(), 300u);
  EXPECT_EQ(core.gauges().jobs, 300u);
  struct stat found {};
  ASSERT_EQ(stat(options.path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(JournalTest, CompactionKeepsTheState) {
  Write(1, 100);
  Core before;
  {
    Durable durable;
    auto journal = Journal::Open(options);
    ASSERT_TRUE((*journal)->ReplayInto(before).ok());
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    (*journal)->Compact(before.last_sequence(), before.EncodeSnapshot());
    (*journal)->Append({Submission(101)});
    durable.WaitFor(101);
  }
  Core after;
  auto journal = Journal::Open(options);
  ASSERT_TRUE((*journal)->ReplayInto(after).ok());
  EXPECT_EQ((*journal)->records_since_snapshot(), 1u);
  ASSERT_TRUE(before.Replay(101, Submission(101).bytes).ok());
  EXPECT_EQ(after.DurableStateHash(), before.DurableStateHash());
}

TEST_F(JournalTest, SurvivesKillWithEverythingAcknowledged) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto journal = Journal::Open(options);
    if (!journal.ok()) _exit(1);
    (*journal)->Start([&](const Status&, std::uint64_t n) {
      if (write(told[1], &n, sizeof n) < 0) _exit(1);
    });
    for (std::uint64_t n = 1;; ++n) (*journal)->Append({Submission(n)});
  }
  std::uint64_t acknowledged = 0;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(read(told[0], &acknowledged, sizeof acknowledged), 8);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(told[1]);
  std::uint64_t more = 0;
  while (read(told[0], &more, sizeof more) == 8) acknowledged = more;
  close(told[0]);
  Core core;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->ReplayInto(core).ok());
  EXPECT_GE(core.last_sequence(), acknowledged);
}

TEST_F(JournalTest, FullDiskStopsAcknowledgementsAndSaysSo) {
  options.file_bytes_max = 256 << 10;
  Durable durable;
  {
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok());
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    for (std::uint64_t n = 1; n <= 100; ++n) (*journal)->Append({Submission(n, 20'000)});
    durable.WaitFor(100);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(durable.status)) << durable.status;
  options.file_bytes_max = 8ull << 30;
  Core core;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok());
  ASSERT_TRUE((*journal)->ReplayInto(core).ok());
  EXPECT_EQ(core.last_sequence(), durable.sequence);
}

TEST_F(JournalTest, AWriteThatFailsNamesTheLimitOnFiles) {
  Durable durable;
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  {
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok());
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    const rlimit limited{1u << 20, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
    for (std::uint64_t n = 1; n <= 100; ++n) (*journal)->Append({Submission(n, 20'000)});
    durable.WaitFor(100);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_NE(MessageOf(durable.status).find("raise it (ulimit -f)"), std::string::npos)
      << durable.status;
}

TEST_F(JournalTest, ASyncThatFailsStopsAcknowledgementsForGood) {
  Durable durable;
  {
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok());
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    (*journal)->Append({Submission(1)});
    durable.WaitFor(1);
    syncs_before_failure = 3;
    for (std::uint64_t n = 2; durable.status.ok() && n <= 100; ++n) {
      (*journal)->Append({Submission(n)});
      durable.WaitFor(n);
    }
    syncs_before_failure = -1;
    (*journal)->Append({Submission(101)});  // the disk works again: too late
  }
  EXPECT_FALSE(durable.status.ok());
  EXPECT_NE(MessageOf(durable.status).find("journal"), std::string::npos) << durable.status;
  EXPECT_GE(durable.sequence, 1u);
  EXPECT_LT(durable.sequence, 100u);
  Core core;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->ReplayInto(core).ok());
  EXPECT_GE(core.last_sequence(), durable.sequence) << "an acknowledged record is lost";
  EXPECT_LE(core.last_sequence(), 100u);
}

TEST_F(JournalTest, SecondSchedulerIsKeptOut) {
  auto first = Journal::Open(options);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsUnavailable(Journal::Open(options).status()));
}

TEST_F(JournalTest, DamagedFileIsRefused) {
  Write(1, 500);
  {
    std::fstream file(options.path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096 + 8);
    file << std::string(3000, 'x');
  }
  const Status refused = Journal::Open(options).status();
  EXPECT_TRUE(absl::IsDataLoss(refused));
  EXPECT_EQ(refused.message(), StrCat("open journal: ", options.path,
                                      ": damaged (page 2): put a copy of it back, or "
                                      "move the folder away to start without its jobs"));
}

TEST_F(JournalTest, AFileThatIsNoJournalIsRefusedInOneLine) {
  std::ofstream(options.path) << std::string(8192, 'x');
  EXPECT_EQ(Journal::Open(options).status().message(),
            StrCat("open journal: ", options.path,
                   ": damaged: put a copy of it back, or move the "
                   "folder away to start without its jobs"));
}

TEST_F(JournalTest, ACutWriteAheadLogGivesItsPrefixAndSaysWhatIsLost) {
  Durable durable;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
  for (std::uint64_t n = 1; n <= 40; ++n) {
    (*journal)->Append({Submission(n)});
    durable.WaitFor(n);
  }
  const std::string copy = folder + "/copy";  // as a scheduler that was killed leaves it
  std::filesystem::create_directory(copy);
  for (const char* end : {"", "-wal", ".mark"}) {
    std::filesystem::copy_file(options.path + end, copy + "/journal.db" + end);
  }
  options.path = copy + "/journal.db";
  std::filesystem::resize_file(options.path + "-wal",
                               std::filesystem::file_size(options.path + "-wal") * 2 / 3);
  Core core;
  auto opened = Journal::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE((*opened)->ReplayInto(core).ok());
  EXPECT_GT(core.last_sequence(), 10u);
  EXPECT_LT(core.last_sequence(), 40u);
  EXPECT_EQ((*opened)->records_lost(), 40 - core.last_sequence());
  Core whole;
  for (std::uint64_t n = 1; n <= core.last_sequence(); ++n) {
    ASSERT_TRUE(whole.Replay(n, Submission(n).bytes).ok());
  }
  EXPECT_NE(core.EncodeSnapshot(), whole.EncodeSnapshot()) << "numbers of lost jobs are skipped";
  Actions actions;
  core.Start({}, actions);
  EXPECT_EQ(core.incarnation(), (*opened)->records_lost() + 1);
}

TEST_F(JournalTest, AnEmptyJournalThatHeldJobsIsRefused) {
  Write(1, 30);
  std::filesystem::remove(options.path);
  std::filesystem::remove(options.path + "-wal");
  Core core;
  {
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    const Status refused = (*journal)->ReplayInto(core);
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_NE(MessageOf(refused).find("30 records"), std::string::npos) << refused;
  }
  std::filesystem::remove(options.path + ".mark");
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok());
  EXPECT_TRUE((*journal)->ReplayInto(core).ok());
  EXPECT_EQ(core.last_sequence(), 0u);
}

TEST_F(JournalTest, AMarkThatIsNoneIsRefusedByName) {
  Write(1, 3);
  for (const std::string text : {"3\n", "x0000000000000000003\n", "99999999999999999999\n"}) {
    std::ofstream(options.path + ".mark") << text;
    const Status refused = Journal::Open(options).status();
    EXPECT_TRUE(absl::IsDataLoss(refused)) << text << refused;
    EXPECT_NE(MessageOf(refused).find("journal.db.mark"), std::string::npos) << refused;
  }
}

/// A submission whose manifest names `source`, padded so that its bytes take several pages.
JournalRecord SubmissionOf(std::uint64_t sequence, const std::string& source) {
  SubmitRecord submit;
  submit.job = sequence;
  submit.submission_key = std::to_string(sequence);
  submit.root.op = "op";
  submit.manifest = std::string(20'000, 'm') + source + std::string(20'000, 'm');
  return {sequence, EncodeRecord({1, submit})};
}

constexpr char kSource[] = "/slides/Anna_Example_1961.svs";

TEST_F(JournalTest, NamesOfSourcesStandInNoFileOfIt) {
  Core core;
  {
    Durable durable;
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    for (std::uint64_t n = 1; n <= 30; ++n) {
      const JournalRecord record = SubmissionOf(n, kSource);
      ASSERT_TRUE(core.Replay(n, record.bytes).ok());
      (*journal)->Append({record});
    }
    durable.WaitFor(30);
    EXPECT_EQ(FilesWith(kSource), 0) << "in the write-ahead log";
    (*journal)->Compact(30, core.EncodeSnapshot());
    (*journal)->Append({SubmissionOf(31, kSource)});
    durable.WaitFor(31);
    EXPECT_EQ(FilesWith(kSource), 0) << "in the snapshot";
  }
  EXPECT_EQ(FilesWith(kSource), 0) << "when it is closed";
  Core again;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->ReplayInto(again).ok());
  EXPECT_EQ(again.last_sequence(), 31u);
}

TEST_F(JournalTest, TheRecordsOfAForgottenJobAreOverwrittenAfterARestartToo) {
  const auto run = [&](Core& core, std::vector<JournalRecord> records, bool compacts) {
    Durable durable;
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->ReplayInto(core).ok());
    (*journal)->Start([&](const Status& s, std::uint64_t n) { durable.Tell(s, n); });
    for (const JournalRecord& record : records) {
      ASSERT_TRUE(core.Replay(record.sequence, record.bytes).ok());
    }
    const std::uint64_t last = core.last_sequence();
    (*journal)->Append(records);
    EXPECT_EQ((*journal)->WantsCompaction(), compacts || last == 4);
    if (!compacts) return durable.WaitFor(last);
    (*journal)->Compact(last, core.EncodeSnapshot());
    EXPECT_FALSE((*journal)->WantsCompaction());
  };
  Core first, second, third;
  run(first, {Submission(1), Submission(2), {3, EncodeRecord({2, CancelRecord{1}})}}, false);
  const std::string sealed = BytesOf(1);
  ASSERT_GT(sealed.size(), 20u);
  EXPECT_EQ(FilesWith(sealed.substr(12)), 1);
  run(second, {{4, EncodeRecord({3, ForgetJobRecord{1}})}}, false);
  EXPECT_EQ(FilesWith(sealed.substr(12)), 1) << "stopped before it compacted";
  run(third, {}, true);
  EXPECT_EQ(FilesWith(sealed.substr(12)), 0);
  EXPECT_LT(third.EncodeSnapshot().size(), first.EncodeSnapshot().size());
}

TEST_F(JournalTest, ASnapshotOfSeveralPiecesComesBackWhole) {
  Core core;
  for (std::uint64_t n = 1; n <= 20; ++n) {
    ASSERT_TRUE(core.Replay(n, Submission(n, 2'000'000).bytes).ok());
  }
  {
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    (*journal)->Start([](const Status&, std::uint64_t) {});
    (*journal)->Compact(20, core.EncodeSnapshot());
  }
  Core after;
  auto journal = Journal::Open(options);
  ASSERT_TRUE((*journal)->ReplayInto(after).ok());
  EXPECT_EQ(after.DurableStateHash(), core.DurableStateHash());
}

TEST_F(JournalTest, AnotherServersKeyIsRefusedAndTheFileStaysAsItIs) {
  Write(1, 3);
  const std::string right = std::exchange(options.secret, "another key");
  const Status refused = Journal::Open(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(MessageOf(refused).find("another server key"), std::string::npos) << refused;
  options.secret = right;
  Core core;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_TRUE((*journal)->ReplayInto(core).ok());
  EXPECT_EQ(core.last_sequence(), 3u);
}

/// A database as the version before wrote it: in clear, the snapshot in one row.
void WriteClear(const std::string& path, std::uint64_t snapshot_sequence,
                const std::string& snapshot, const std::vector<JournalRecord>& records) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  const auto insert = [&](const char* sql, std::uint64_t sequence, const std::string& bytes) {
    sqlite3_stmt* statement = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr), SQLITE_OK);
    sqlite3_bind_int64(statement, 1, static_cast<sqlite3_int64>(sequence));
    sqlite3_bind_blob64(statement, 2, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
  };
  ASSERT_EQ(sqlite3_exec(handle,
                         "PRAGMA page_size=4096;PRAGMA journal_mode=WAL;"
                         "CREATE TABLE records(sequence INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
                         "CREATE TABLE snapshot(sequence INTEGER PRIMARY KEY, bytes BLOB NOT NULL)",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  insert("INSERT INTO snapshot VALUES(?1, ?2)", snapshot_sequence, snapshot);
  for (const JournalRecord& record : records) {
    insert("INSERT INTO records VALUES(?1, ?2)", record.sequence, record.bytes);
  }
  sqlite3_close(handle);
}

TEST_F(JournalTest, WhatAnEarlierVersionWroteInClearIsSealedAndKept) {
  Core before;
  ASSERT_TRUE(before.Replay(1, SubmissionOf(1, kSource).bytes).ok());
  const std::string snapshot = before.EncodeSnapshot();
  const std::vector<JournalRecord> records = {SubmissionOf(2, kSource), SubmissionOf(3, kSource)};
  for (const JournalRecord& record : records) {
    ASSERT_TRUE(before.Replay(record.sequence, record.bytes).ok());
  }
  WriteClear(options.path, 1, snapshot, records);
  ASSERT_GT(FilesWith(kSource), 0);
  for (int opened = 1; opened <= 2; ++opened) {
    Core after;
    auto journal = Journal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(FilesWith(kSource), 0) << "opened " << opened;
    ASSERT_TRUE((*journal)->ReplayInto(after).ok());
    EXPECT_EQ(after.DurableStateHash(), before.DurableStateHash());
  }
}

TEST_F(JournalTest, OfALaterVersionIsRefusedWithBothVersionsAndLeftAsItIs) {
  Write(1, 3);
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(options.path.c_str(), &handle), SQLITE_OK);
  const std::string raise = StrCat("PRAGMA user_version=", kRecordVersion + 1);
  ASSERT_EQ(sqlite3_exec(handle, raise.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(handle);
  const auto all_bytes = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path()] = std::string((std::istreambuf_iterator<char>(file)), {});
    }
    return files;
  };
  const auto before = all_bytes();
  const Status refused = Journal::Open(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(
      MessageOf(refused),
      StrCat("open journal: ", options.path, ": version ", kRecordVersion + 1,
             ", this program knows 1 to ", kRecordVersion,
             "; use the release of Patchbay that wrote it, or a later one, or move the folder "
             "away to start without its jobs"));
  EXPECT_TRUE(all_bytes() == before);
}

TEST_F(JournalTest, ItsVersionIsInTheFileWhileTheSchedulerRuns) {
  const auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  std::ifstream file(options.path, std::ios::binary);
  file.seekg(60);
  std::array<char, 4> version{};
  file.read(version.data(), version.size());
  EXPECT_EQ(version, (std::array<char, 4>{0, 0, 0, kRecordVersion}));
}

TEST_F(JournalTest, ARecordInAnothersPlaceIsDataLoss) {
  Write(1, 3);
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(options.path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle,
                         "UPDATE records SET bytes = (SELECT bytes FROM records WHERE sequence = 2)"
                         " WHERE sequence = 3",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(handle);
  Core core;
  auto journal = Journal::Open(options);
  ASSERT_TRUE(journal.ok()) << journal.status();
  const Status read = (*journal)->ReplayInto(core);
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_NE(MessageOf(read).find("record 3: "), std::string::npos) << read;
}

TEST_F(JournalTest, MissingRecordIsDataLoss) {
  Write(1, 5);
  Write(7, 8);
  Core core;
  auto journal = Journal::Open(options);
  EXPECT_TRUE(absl::IsDataLoss((*journal)->ReplayInto(core)));
}

}  // namespace
}  // namespace patchbay::scheduler
