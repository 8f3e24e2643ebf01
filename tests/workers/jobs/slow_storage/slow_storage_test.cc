// Every task op on slow storage: none goes without progress for as long as a lease lasts.
#include "tests/workers/jobs/slow_storage/slow_storage.h"

#include <map>
#include <mutex>
#include <set>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/workers/jobs/ingest/small_ingest.h"

namespace patchbay::workers {
namespace {

/// A tenth of the lease that the scheduler gives (CoreOptions::lease_ms is 10 s).
constexpr std::int64_t kShortLeaseMs = 1000;
constexpr std::int64_t kPageBytes = 4096;

struct Clock {
  std::atomic<const std::atomic<std::uint64_t>*> progress{nullptr};
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::int64_t> now_ms{0}, renewed_ms{0}, longest_ms{0}, operations{0};
  std::set<std::pair<ino_t, std::int64_t>> pages;  ///< that were read
  dev_t device = 0;                                ///< of the folder for temporary files
};
Clock& TheClock() {
  static Clock clock;
  return clock;
}

/// What a test's files are. Pipes and what the kernel says of itself (/proc) are no storage.
bool IsStored(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == TheClock().device;
}
bool IsStored(const char*) { return true; }

/// Whether the task reads one of these pages for the first time: what it has read is in memory.
bool IsFirst(int fd, std::int64_t from, std::int64_t bytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  static std::mutex mu;
  const std::lock_guard lock(mu);
  bool is_first = false;
  for (std::int64_t page = from / kPageBytes; page * kPageBytes < from + bytes; ++page) {
    is_first |= TheClock().pages.emplace(status.st_ino, page).second;
  }
  return is_first;
}

/// An operation on storage has ended.
void Spend(std::int64_t bytes) {
  Clock& clock = TheClock();
  const auto* progress = clock.progress.load();
  if (progress == nullptr) return;
  ++clock.operations;
  if (const std::uint64_t value = progress->load(); clock.seen.exchange(value) != value) {
    clock.renewed_ms = clock.now_ms.load();
  }
  clock.now_ms += kOperationMs + std::max<std::int64_t>(bytes, 0) / kBytesPerMs;
  clock.longest_ms = std::max(clock.longest_ms.load(), clock.now_ms - clock.renewed_ms);
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void SlowStorage::Begin(const std::atomic<std::uint64_t>* progress) {
  Clock& clock = TheClock();
  struct stat folder {};
  EXPECT_EQ(stat(std::filesystem::temp_directory_path().c_str(), &folder), 0);
  clock.device = folder.st_dev;
  clock.pages.clear();
  clock.seen = progress->load();
  clock.now_ms = clock.renewed_ms = clock.longest_ms = clock.operations = 0;
  clock.progress = progress;
}
std::int64_t SlowStorage::End() {
  TheClock().progress = nullptr;
  return TheClock().longest_ms;
}
std::int64_t SlowStorage::operations() { return TheClock().operations; }

}  // namespace patchbay::workers

// The C library's functions through which all storage is reached, each as slow as storage is.
extern "C" {
#define PATCHBAY_SLOW(Result, name, parameters, arguments, on, bytes, ...)                    \
  Result name parameters {                                                                    \
    static auto* const real = patchbay::workers::Real<Result parameters>(#name);              \
    const bool is_stored = patchbay::workers::IsStored(on);                                   \
    const Result result = real arguments;                                                     \
    __VA_OPT__(                                                                               \
        if (is_stored && !patchbay::workers::IsFirst(on, __VA_ARGS__, bytes)) return result;) \
    if (is_stored) patchbay::workers::Spend(bytes);                                           \
    return result;                                                                            \
  }
PATCHBAY_SLOW(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), fd, result)
PATCHBAY_SLOW(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), fd,
              result, at)
PATCHBAY_SLOW(ssize_t, pread64, (int fd, void* to, size_t size, off64_t at), (fd, to, size, at), fd,
              result, at)
PATCHBAY_SLOW(ssize_t, write, (int fd, const void* from, size_t size), (fd, from, size), fd, result)
PATCHBAY_SLOW(ssize_t, pwrite, (int fd, const void* from, size_t size, off_t at),
              (fd, from, size, at), fd, result)
PATCHBAY_SLOW(ssize_t, pwrite64, (int fd, const void* from, size_t size, off64_t at),
              (fd, from, size, at), fd, result)
PATCHBAY_SLOW(int, fsync, (int fd), (fd), fd, 0)
PATCHBAY_SLOW(int, unlink, (const char* path), (path), path, 0)
PATCHBAY_SLOW(int, unlinkat, (int fd, const char* path, int flags), (fd, path, flags), fd, 0)
PATCHBAY_SLOW(int, remove, (const char* path), (path), path, 0)
PATCHBAY_SLOW(int, rmdir, (const char* path), (path), path, 0)
PATCHBAY_SLOW(int, mkdir, (const char* path, mode_t mode), (path, mode), path, 0)
PATCHBAY_SLOW(int, rename, (const char* from, const char* to), (from, to), from, 0)
#undef PATCHBAY_SLOW
}

namespace patchbay::workers {
namespace {

class SlowStorageTest : public SmallIngest {
 protected:
  /// Runs a job whose every task is on slow storage: op -> its longest time without progress.
  std::map<std::string, std::int64_t> Run(const std::string& op, const Json& payload,
                                          const Json& manifest) {
    std::map<std::string, std::int64_t> longest;
    TinyScheduler job(manifest, 1);
    job.before_attempt = [](const TaskSignals& signals) { SlowStorage::Begin(&signals.progress); };
    job.after_attempt = [&](const std::string& of) {
      longest[of] = std::max(longest[of], SlowStorage::End());
      operations_ += SlowStorage::operations();
    };
    job.Submit(op, payload);
    job.Run();
    for (const Status& failure : job.Failures()) ADD_FAILURE() << Describe(failure);
    return longest;
  }
  void ExpectLeasesHold(const std::map<std::string, std::int64_t>& longest) {
    for (const auto& [op, ms] : longest) {
      EXPECT_LT(ms, kShortLeaseMs) << op << ": without progress for so many ms";
    }
    EXPECT_GT(operations_, 500) << "what the tasks do was not seen";
  }

  /// Sources enough that one operation for each, without progress, is longer than the lease.
  std::vector<std::string> ManySlides() {
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < kSlides; ++i) {
      names.push_back(StrCat(i, ".svs"));
      MakeSlide(names.back(), 360, i + 1);
    }
    return names;
  }

  static constexpr std::uint64_t kSlides = kShortLeaseMs / kOperationMs + 4;
  std::int64_t operations_ = 0;
};

TEST_F(SlowStorageTest, AnIngestOfManySlidesKeepsItsLeases) {
  const Json manifest = Manifest(ManySlides());
  ExpectLeasesHold(Run("ingest.plan", settings_, manifest));
}

TEST_F(SlowStorageTest, AnIngestOfManyShardsKeepsItsLeases) {
  MakeSlide("a.svs", 1300, 1);
  settings_["shard"] = 256;
  ExpectLeasesHold(Run("ingest.plan", settings_, Manifest({"a.svs"})));
}

}  // namespace
}  // namespace patchbay::workers
