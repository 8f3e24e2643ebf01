// Loaded before a program (LD_PRELOAD), gives the files below $SLOW_DISK_PATH a disk of their own
// and says how long reads of them took: every process of a command shares the one disk.
//
//   SLOW_DISK_PATH    a file or folder
//   SLOW_DISK_RATE    bytes a second; 0: as fast as the page cache
//   SLOW_DISK_TALLY   a file of at least 64 zero bytes: bytes read, nanoseconds in reads, reads
//
// Each read waits until the disk has done all reads before it, then for its own bytes; the bytes
// come from the page cache. Not modelled: seeks, read-ahead by the kernel.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

/// In memory that all processes share.
struct Tally {
  std::atomic<std::uint64_t> bytes, waited_ns, reads, free_at_ns;
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

/// Waits for the disk to have read `bytes`, and books the time since `start`.
void Charge(std::uint64_t start, std::uint64_t bytes) {
  const Disk& disk = TheDisk();
  if (disk.bytes_per_ns > 0 && bytes > 0) {
    const auto takes = static_cast<std::uint64_t>(static_cast<double>(bytes) / disk.bytes_per_ns);
    std::uint64_t free_at = disk.tally->free_at_ns.load(), done;
    do {
      done = (free_at > start ? free_at : start) + takes;
    } while (!disk.tally->free_at_ns.compare_exchange_weak(free_at, done));
    const timespec until{static_cast<time_t>(done / 1'000'000'000U),
                         static_cast<long>(done % 1'000'000'000U)};
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
  Charge(start, done > 0 ? static_cast<std::uint64_t>(done) : 0);
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
  Charge(start, done > 0 ? static_cast<std::uint64_t>(done) : 0);
  return done;
}
size_t fread(void* into, size_t size, size_t count, FILE* file) {
  using Fread = size_t (*)(void*, size_t, size_t, FILE*);
  static const Fread next = Next<Fread>("fread");
  if (!IsOnDisk(fileno(file))) return next(into, size, count, file);
  const std::uint64_t start = NowNs();
  const size_t done = next(into, size, count, file);
  Charge(start, done * size);
  return done;
}
}
