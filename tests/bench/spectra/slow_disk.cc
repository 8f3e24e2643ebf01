// Loaded before a program (LD_PRELOAD), gives the files below $SLOW_DISK_PATH a disk of their own
// and says how long reads of them took: every process of a command shares the one disk.
//
//   SLOW_DISK_PATH    a file or folder
//   SLOW_DISK_RATE    bytes a second; 0: as fast as the page cache
//   SLOW_DISK_TALLY   a file of sizeof(Tally) zeros: bytes from the disk, nanoseconds in reads,
//   reads
//
// A page comes from the disk when it is read for the first time: then the read waits until the disk
// has done all reads before it, and for its own pages. Later reads of the page find it in memory.
// Not modelled: seeks, the kernel's read-ahead.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr std::uint64_t kPageBytes = 4096, kPageBits = std::uint64_t{1} << 26;

/// In memory that all processes share. A page's bit is found by its hash, so one in some hundreds
/// is taken for read when it was not.
struct Tally {
  std::atomic<std::uint64_t> bytes, waited_ns, reads, free_at_ns;
  std::atomic<std::uint64_t> pages[kPageBits / 64];
};

struct Disk {
  const char* path = std::getenv("SLOW_DISK_PATH");
  double bytes_per_ns = 0;
  Tally* tally = nullptr;

  Disk() {
    const char* rate = std::getenv("SLOW_DISK_RATE");
    const char* file = std::getenv("SLOW_DISK_TALLY");
    if (rate != nullptr) bytes_per_ns = std::atof(rate) * 1e-9;
    if (path == nullptr || file == nullptr) return;
    const int fd = open(file, O_RDWR | O_CLOEXEC);
    void* memory = mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) tally = static_cast<Tally*>(memory);
    close(fd);
  }
};

const Disk& TheDisk() {
  static const Disk disk;
  return disk;
}

std::uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

bool IsOnDisk(int fd) {
  const Disk& disk = TheDisk();
  if (disk.tally == nullptr || fd < 0) return false;
  char link[32], target[4096];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, target, sizeof(target));
  const std::size_t length = std::strlen(disk.path);
  return size >= static_cast<ssize_t>(length) && std::memcmp(target, disk.path, length) == 0;
}

/// Bytes of the pages that nobody has read yet; from now on somebody has.
std::uint64_t TakePages(int fd, std::uint64_t begin, std::uint64_t end) {
  struct stat st {};
  if (begin >= end || fstat(fd, &st) != 0) return 0;
  std::uint64_t unread = 0;
  for (std::uint64_t page = begin / kPageBytes; page <= (end - 1) / kPageBytes; ++page) {
    std::uint64_t hash = (static_cast<std::uint64_t>(st.st_ino) << 32 ^ page) * 0x9E3779B97F4A7C15U;
    hash = (hash ^ hash >> 31) % kPageBits;
    const std::uint64_t bit = std::uint64_t{1} << hash % 64;
    if ((TheDisk().tally->pages[hash / 64].fetch_or(bit) & bit) == 0) unread += kPageBytes;
  }
  return unread;
}

/// Waits for the disk to have read what `fd` was asked for since `start`, and books the time.
void Charge(std::uint64_t start, int fd, std::int64_t at, std::int64_t done) {
  const Disk& disk = TheDisk();
  if (at < 0 || done <= 0) return;
  const auto begin = static_cast<std::uint64_t>(at);
  const std::uint64_t bytes = TakePages(fd, begin, begin + static_cast<std::uint64_t>(done));
  if (disk.bytes_per_ns > 0 && bytes > 0) {
    const auto takes = static_cast<std::uint64_t>(static_cast<double>(bytes) / disk.bytes_per_ns);
    std::uint64_t free_at = disk.tally->free_at_ns.load(), end;
    do {
      end = (free_at > start ? free_at : start) + takes;
    } while (!disk.tally->free_at_ns.compare_exchange_weak(free_at, end));
    const timespec until{static_cast<time_t>(end / 1'000'000'000U),
                         static_cast<long>(end % 1'000'000'000U)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
  }
  disk.tally->bytes += bytes;
  disk.tally->waited_ns += NowNs() - start;
  disk.tally->reads += 1;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

ssize_t PositionedRead(int fd, void* into, size_t size, off_t at) {
  using Pread = ssize_t (*)(int, void*, size_t, off_t);
  static const Pread next = Next<Pread>("pread64");
  if (!IsOnDisk(fd)) return next(fd, into, size, at);
  const std::uint64_t start = NowNs();
  const ssize_t done = next(fd, into, size, at);
  Charge(start, fd, at, done);
  return done;
}

}  // namespace

extern "C" {

ssize_t pread(int fd, void* into, size_t size, off_t at) {
  return PositionedRead(fd, into, size, at);
}
ssize_t pread64(int fd, void* into, size_t size, off_t at) {
  return PositionedRead(fd, into, size, at);
}
ssize_t read(int fd, void* into, size_t size) {
  using Read = ssize_t (*)(int, void*, size_t);
  static const Read next = Next<Read>("read");
  if (!IsOnDisk(fd)) return next(fd, into, size);
  const std::uint64_t start = NowNs();
  const ssize_t done = next(fd, into, size);
  Charge(start, fd, done > 0 ? lseek(fd, 0, SEEK_CUR) - done : -1, done);
  return done;
}
size_t fread(void* into, size_t size, size_t count, FILE* file) {
  using Fread = size_t (*)(void*, size_t, size_t, FILE*);
  static const Fread next = Next<Fread>("fread");
  const int fd = fileno(file);
  if (!IsOnDisk(fd)) return next(into, size, count, file);
  const std::uint64_t start = NowNs();
  const std::int64_t at = ftello(file);
  const size_t done = next(into, size, count, file);
  Charge(start, fd, at, static_cast<std::int64_t>(done * size));
  return done;
}
}
