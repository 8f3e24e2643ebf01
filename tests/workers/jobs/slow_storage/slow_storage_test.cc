// The clock of slow storage, and that no op of the task table is left out of these tests.
#include "tests/workers/jobs/slow_storage/slow_storage.h"

#include <mutex>
#include <set>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/workers/jobs/slow_storage/slow_job.h"

namespace patchbay::workers {
namespace {

constexpr std::int64_t kPageBytes = 4096;

struct Clock {
  std::atomic<const std::atomic<std::uint64_t>*> progress{nullptr};
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::int64_t> now_ms{0}, renewed_ms{0}, longest_ms{0}, operations{0};
  std::mutex mu;
  std::set<std::pair<ino_t, std::int64_t>> pages;  ///< pages read so far; guarded by mu
  std::set<std::string> names;                     ///< names asked for; guarded by mu
  std::string folder;                              ///< for temporary files
  dev_t device = 0;                                ///< device of that folder
};
Clock& TheClock() {
  static Clock clock;
  return clock;
}

/// Whether the file lies on the slow storage: a regular file on the device of the test's temporary
/// folder. Pipes and /proc do not.
bool IsStored(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == TheClock().device;
}
bool IsStored(const char*) { return true; }

/// Whether the task reads one of these pages for the first time; pages read before are in memory.
bool IsFirst(int fd, std::int64_t from, std::int64_t bytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return false;
  const std::lock_guard lock(TheClock().mu);
  bool is_first = false;
  for (std::int64_t page = from / kPageBytes; page * kPageBytes < from + bytes; ++page) {
    is_first |= TheClock().pages.emplace(status.st_ino, page).second;
  }
  return is_first;
}

/// Something on storage has ended that took so long.
void SpendMs(std::int64_t ms) {
  Clock& clock = TheClock();
  const auto* progress = clock.progress.load();
  if (progress == nullptr) return;
  ++clock.operations;
  if (const std::uint64_t value = progress->load(); clock.seen.exchange(value) != value) {
    clock.renewed_ms = clock.now_ms.load();
  }
  clock.now_ms += ms;
  clock.longest_ms = std::max(clock.longest_ms.load(), clock.now_ms - clock.renewed_ms);
}

/// An operation on storage has ended.
void Spend(std::int64_t bytes) {
  SpendMs(kOperationMs + std::max<std::int64_t>(bytes, 0) / kBytesPerMs);
}

/// Counts a lookup of a name. Names looked up before are in memory, but an opened file may have
/// changed.
void SpendLookup(const char* path, bool is_opened) {
  Clock& clock = TheClock();
  if (clock.progress.load() == nullptr) return;
  {
    const std::lock_guard lock(clock.mu);
    const std::string_view name = path;
    if (name.starts_with('/') && !name.starts_with(clock.folder + "/")) return;
    if (!clock.names.emplace(name).second && !is_opened) return;
  }
  SpendMs(kLookupMs);
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
  clock.folder = std::filesystem::canonical(std::filesystem::temp_directory_path()).string();
  clock.pages.clear();
  clock.names.clear();
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

#define PATCHBAY_SLOW_LOOKUP(Result, name, parameters, arguments)                \
  Result name parameters {                                                       \
    static auto* const real = patchbay::workers::Real<Result parameters>(#name); \
    Result result = real arguments;                                              \
    patchbay::workers::SpendLookup(path, false);                                 \
    return result;                                                               \
  }
PATCHBAY_SLOW_LOOKUP(int, stat, (const char* path, struct stat* to), (path, to))
PATCHBAY_SLOW_LOOKUP(int, lstat, (const char* path, struct stat* to), (path, to))
PATCHBAY_SLOW_LOOKUP(char*, realpath, (const char* path, char* to), (path, to))
PATCHBAY_SLOW_LOOKUP(DIR*, opendir, (const char* path), (path))
#undef PATCHBAY_SLOW_LOOKUP

int open(const char* path, int flags, ...) {
  static auto* const real = patchbay::workers::Real<int(const char*, int, mode_t)>("open");
  va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  const int result = real(path, flags, mode);
  patchbay::workers::SpendLookup(path, true);
  return result;
}

/// openat2 has no other function.
long syscall(long number, ...) noexcept {
  using Function = long(long, long, long, long, long, long, long);
  static auto* const real = patchbay::workers::Real<Function>("syscall");
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (long& one : a) one = va_arg(rest, long);
  va_end(rest);
  const long result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (number == SYS_openat2) {
    patchbay::workers::SpendLookup(reinterpret_cast<const char*>(a[1]), true);
  }
  return result;
}
}

namespace patchbay::workers {
namespace {

TEST(SlowStorageOps, EveryOpOfTheTaskTableIsRunOnIt) {
  std::set<std::string> ops = {"noop"};  // touches no storage
  for (const Ops* some : {&kIngestOps, &kMeasureOps, &kConvertOps, &kVolumeOps, &kLabelOps,
                          &kStreamOps, &kLookOps, &kSpectraOps, &kSynthOps}) {
    ops.insert(some->begin(), some->end());
  }
  const std::vector<std::string> names = TaskNames();
  EXPECT_EQ(ops, std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace patchbay::workers
