#include "tests/emulated_cuda/fibers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include <sys/mman.h>

#include "tests/emulated_cuda/emulation.h"

#if defined(PATCHBAY_EMULATED_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(PATCHBAY_EMULATED_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// Saves the registers that a call must keep, and continues where another fiber stopped.
asm(R"(
.text
.type patchbay_switch_stack, @function
patchbay_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size patchbay_switch_stack, .-patchbay_switch_stack
)");
extern "C" void patchbay_switch_stack(void** save, void* load);

namespace patchbay::emulated_cuda {

__thread const Place* running_place = nullptr;

namespace {

#if defined(PATCHBAY_EMULATED_ASAN) || defined(PATCHBAY_EMULATED_TSAN)
constexpr std::size_t kStackBytes = 512 << 10;
#else
constexpr std::size_t kStackBytes = 128 << 10;
#endif
constexpr std::size_t kGuardBytes = 4'096;

/// A thread of the block, or the scheduler.
struct Fiber {
  Place place{};
  void* stack_pointer = nullptr;
  void* memory = nullptr;      ///< its guard page, then its stack
  std::byte* stack = nullptr;  ///< its lowest usable byte
  std::size_t stack_bytes = kStackBytes;
  bool ended = false;
  Meeting waits = Meeting::kNone;
  Site site{};
  unsigned mask = 0;
  std::uint64_t value = 0;  ///< its value for the others it meets, then theirs
  int lane_from = 0;
  /// The address that identifies a wait to ThreadSanitizer: one of two in turn, so that threads
  /// that continue later are not ordered after this one's next actions.
  char waited[2] = {};
  unsigned waits_begun = 0;
  std::array<void*, kWarp> met{};  ///< the waits of those that it met at a barrier of its warp
#if defined(PATCHBAY_EMULATED_ASAN)
  void* fake_stack = nullptr;
#endif
#if defined(PATCHBAY_EMULATED_TSAN)
  void* tsan = nullptr;
#endif

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (memory != nullptr) ::munmap(memory, kStackBytes + kGuardBytes);
#if defined(PATCHBAY_EMULATED_TSAN)
    if (memory != nullptr) __tsan_destroy_fiber(tsan);
#endif
  }
};

/// Fibers and shared memory of the OS thread; kept from launch to launch.
struct FiberSet {
  std::vector<std::unique_ptr<Fiber>> fibers;
  Fiber scheduler;
  Fiber* running = nullptr;
  const Grid* grid = nullptr;
  std::size_t threads = 0, ended = 0;
  std::byte* shared = nullptr;     ///< kSharedOptinBytes, then a guard page
  std::byte* shared_at = nullptr;  ///< the block's, up to the guard page
  /// The addresses by which ThreadSanitizer knows the begin and end of a block, and its barriers in
  /// turn.
  char begun = 0, done = 0, barrier[2] = {};
  unsigned barriers = 0;

  FiberSet() = default;
  FiberSet(const FiberSet&) = delete;
  FiberSet& operator=(const FiberSet&) = delete;
  ~FiberSet() {
    if (shared != nullptr) ::munmap(shared, kSharedOptinBytes + kGuardBytes);
  }
};

void* MapMemory(std::size_t size_bytes) {
  void* memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) Report("no memory for the threads of a block");
  return memory;
}

FiberSet& ThreadFibers() {
  static thread_local auto set = std::make_unique<FiberSet>();
  return *set;
}
__thread FiberSet* running_set = nullptr;

/// Orders everything before a Release at `at` before everything after an Acquire there.
void Release([[maybe_unused]] void* at) {
#if defined(PATCHBAY_EMULATED_TSAN)
  __tsan_release(at);
#endif
}
void Acquire([[maybe_unused]] void* at) {
#if defined(PATCHBAY_EMULATED_TSAN)
  if (at != nullptr) __tsan_acquire(at);
#endif
}

void SwitchTo(FiberSet& set, Fiber& from, Fiber& to, [[maybe_unused]] bool for_good) {
  set.running = &to;
  running_place = &to == &set.scheduler ? nullptr : &to.place;
#if defined(PATCHBAY_EMULATED_ASAN)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &from.fake_stack, to.stack, to.stack_bytes);
#endif
#if defined(PATCHBAY_EMULATED_TSAN)
  // No order comes from the switch: only barriers make one.
  __tsan_switch_to_fiber(to.tsan, __tsan_switch_to_fiber_no_sync);
#endif
  patchbay_switch_stack(&from.stack_pointer, to.stack_pointer);
#if defined(PATCHBAY_EMULATED_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void FiberMain() {
  FiberSet& set = *running_set;
  Fiber& self = *set.running;
#if defined(PATCHBAY_EMULATED_ASAN)
  const void* bottom = nullptr;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &set.scheduler.stack_bytes);
  set.scheduler.stack = static_cast<std::byte*>(const_cast<void*>(bottom));
#endif
  Acquire(&set.begun);
  (*set.grid->run)();
  Release(&set.done);
  self.ended = true;
  SwitchTo(set, self, set.scheduler, true);
  __builtin_unreachable();
}

std::unique_ptr<Fiber> MakeFiber() {
  auto fiber = std::make_unique<Fiber>();
  fiber->memory = MapMemory(kStackBytes + kGuardBytes);
  (void)::mprotect(fiber->memory, kGuardBytes, PROT_NONE);
  fiber->stack = static_cast<std::byte*>(fiber->memory) + kGuardBytes;
#if defined(PATCHBAY_EMULATED_TSAN)
  fiber->tsan = __tsan_create_fiber(0);
#endif
  return fiber;
}

/// Lets the fiber begin at FiberMain when next switched to.
void Prepare(Fiber& fiber) {
  auto* top = reinterpret_cast<void**>(fiber.stack + kStackBytes);
  *--top = nullptr;  // FiberMain's return address, if it had one: its stack is aligned as by a call
  *--top = reinterpret_cast<void*>(&FiberMain);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.stack_pointer = top;
  fiber.ended = false;
  fiber.waits = Meeting::kNone;
  fiber.met.fill(nullptr);
}

std::string Text(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}
std::string Text(const Site& site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}
std::string Text(const Fiber& fiber) {
  return "thread " + Text(fiber.place.thread) +
         (fiber.ended ? " has ended"
          : fiber.waits == Meeting::kNone
              ? " runs"
              : std::string(fiber.waits == Meeting::kBarrier ? " waits at the barrier of "
                                                             : " waits for its warp at ") +
                    Text(fiber.site));
}

[[noreturn]] void ReportDivergence(FiberSet& set, const Fiber& one, const Fiber& other) {
  Report("a barrier is not reached by all: kernel " + SymbolOf(set.grid->kernel) + ", block " +
         Text(one.place.block) + ": " + Text(one) + ", " + Text(other));
}

/// The order in which threads go on: of warps and within them, forwards, backwards or any.
void Shuffle(std::vector<Fiber*>& ready) {
  switch (Roll() % 4) {
    case 0:
      return;
    case 1:
      std::reverse(ready.begin(), ready.end());
      return;
    case 2: {  // warps in any order, their lanes in order
      std::vector<std::size_t> warps((ready.size() + kWarp - 1) / kWarp);
      std::iota(warps.begin(), warps.end(), std::size_t{0});
      for (std::size_t i = warps.size(); i > 1; --i) std::swap(warps[i - 1], warps[Roll() % i]);
      std::vector<Fiber*> ordered;
      for (const std::size_t warp : warps) {
        const std::size_t end = std::min(ready.size(), (warp + 1) * kWarp);
        for (std::size_t i = warp * kWarp; i < end; ++i) ordered.push_back(ready[i]);
      }
      ready.swap(ordered);
      return;
    }
    default:
      for (std::size_t i = ready.size(); i > 1; --i) std::swap(ready[i - 1], ready[Roll() % i]);
  }
}

std::size_t IndexOf(const Fiber& fiber) {
  const Place& p = fiber.place;
  return (std::size_t{p.thread.z} * p.block_size.y + p.thread.y) * p.block_size.x + p.thread.x;
}

/// Lets the lanes that `last` meets go on once all of them are there.
void MeetWarp(FiberSet& set, Fiber& last, std::vector<Fiber*>& ready) {
  const std::size_t first = IndexOf(last) / kWarp * kWarp;
  std::array<Fiber*, kWarp> lanes{};
  for (std::size_t i = 0; i < kWarp && first + i < set.threads; ++i) {
    Fiber& lane = *set.fibers[first + i];
    if ((last.mask >> i & 1) == 0) continue;
    if (lane.ended || lane.waits == Meeting::kBarrier) ReportDivergence(set, last, lane);
    if (lane.waits == Meeting::kNone) return;
    if (lane.waits != last.waits || lane.mask != last.mask || lane.site.line != last.site.line) {
      ReportDivergence(set, last, lane);
    }
    lanes[i] = &lane;
  }
  std::array<std::uint64_t, kWarp> given{};
  std::uint64_t votes = 0;
  for (std::size_t i = 0; i < kWarp; ++i) {
    if (lanes[i] == nullptr) continue;
    given[i] = lanes[i]->value;
    if (given[i] != 0) votes |= std::uint64_t{1} << i;
  }
  for (std::size_t i = 0; i < kWarp; ++i) {
    if (lanes[i] == nullptr) continue;
    const auto from = static_cast<std::size_t>(lanes[i]->lane_from);
    if (last.waits == Meeting::kVote) lanes[i]->value = votes;
    if (last.waits == Meeting::kShuffle && lanes[i]->lane_from >= 0 && from < kWarp) {
      // The value of a lane outside of the mask is undefined.
      lanes[i]->value = lanes[from] != nullptr ? given[from] : Roll();
    }
  }
  for (Fiber* lane : lanes) {
    if (lane == nullptr) continue;
    for (std::size_t i = 0; i < kWarp; ++i) {
      Fiber* const other = lanes[i];
      lane->met[i] = other == nullptr ? nullptr : &other->waited[(other->waits_begun - 1) % 2];
    }
    lane->waits = Meeting::kNone;
    ready.push_back(lane);
  }
}

/// All threads wait or have ended: they must all wait at one barrier.
void MeetBlock(FiberSet& set, std::vector<Fiber*>& ready) {
  const Fiber* first = nullptr;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < set.threads; ++i) {
    const Fiber& fiber = *set.fibers[i];
    if (first == nullptr && !fiber.ended) first = &fiber;
    count += fiber.value != 0 ? 1 : 0;
  }
  for (std::size_t i = 0; i < set.threads; ++i) {
    const Fiber& fiber = *set.fibers[i];
    if (fiber.ended || fiber.waits != Meeting::kBarrier || fiber.site.line != first->site.line) {
      ReportDivergence(set, *first, fiber);
    }
  }
  for (std::size_t i = 0; i < set.threads; ++i) {
    Fiber& fiber = *set.fibers[i];
    fiber.waits = Meeting::kNone;
    fiber.value = count;
    ready.push_back(&fiber);
  }
  ++set.barriers;
}

void RunBlock(FiberSet& set) {
  std::vector<Fiber*> ready, next;
  for (std::size_t i = 0; i < set.threads; ++i) {
    Prepare(*set.fibers[i]);
    ready.push_back(set.fibers[i].get());
  }
  std::size_t ended = 0;
  while (ended < set.threads) {
    Shuffle(ready);
    next.clear();
    for (Fiber* fiber : ready) {
      SwitchTo(set, set.scheduler, *fiber, false);
      if (fiber->ended) ++ended;
      if (!fiber->ended && fiber->waits != Meeting::kBarrier) MeetWarp(set, *fiber, next);
    }
    if (next.empty() && ended < set.threads) MeetBlock(set, next);
    ready.swap(next);
  }
}

/// Blocks until the others of this meeting are there.
void Wait(Meeting meeting, Site site, unsigned mask, std::uint64_t value, int lane) {
  FiberSet& set = *running_set;
  Fiber& self = *set.running;
  self.waits = meeting;
  self.site = site;
  self.mask = mask;
  self.value = value;
  self.lane_from = lane;
  const unsigned barriers = set.barriers;
  Release(meeting == Meeting::kBarrier ? &set.barrier[barriers % 2]
                                       : &self.waited[self.waits_begun++ % 2]);
  SwitchTo(set, self, set.scheduler, false);
  if (meeting == Meeting::kBarrier) Acquire(&set.barrier[barriers % 2]);
  if (meeting != Meeting::kWarp) return;  // votes and shuffles order nothing
  for (void* const wait : self.met) Acquire(wait);
}

}  // namespace

void RunGrid(const Grid& grid) {
  FiberSet& set = ThreadFibers();
  running_set = &set;
  set.grid = &grid;
  set.threads = std::size_t{grid.block.x} * grid.block.y * grid.block.z;
  while (set.fibers.size() < set.threads) set.fibers.push_back(MakeFiber());
#if defined(PATCHBAY_EMULATED_TSAN)
  set.scheduler.tsan = __tsan_get_current_fiber();
#endif
  const std::size_t blocks = std::size_t{grid.size.x} * grid.size.y * grid.size.z;
  const bool backwards = OneIn(2);
  const std::size_t start = Roll() % blocks;
  if (set.shared == nullptr) {
    set.shared = static_cast<std::byte*>(MapMemory(kSharedOptinBytes + kGuardBytes));
    (void)::mprotect(set.shared + kSharedOptinBytes, kGuardBytes, PROT_NONE);
  }
  set.shared_at = set.shared + kSharedOptinBytes - (grid.shared_bytes + 15) / 16 * 16;
  for (std::size_t n = 0; n < blocks; ++n) {
    const std::size_t at = (start + (backwards ? blocks - n : n)) % blocks;
    const uint3 block = {static_cast<unsigned>(at % grid.size.x),
                         static_cast<unsigned>(at / grid.size.x % grid.size.y),
                         static_cast<unsigned>(at / grid.size.x / grid.size.y)};
    for (std::size_t i = 0; i < set.threads; ++i) {
      const auto x = static_cast<unsigned>(i % grid.block.x);
      const auto y = static_cast<unsigned>(i / grid.block.x % grid.block.y);
      const auto z = static_cast<unsigned>(i / grid.block.x / grid.block.y);
      set.fibers[i]->place = {{x, y, z}, block, grid.block, grid.size};
    }
    std::memset(set.shared_at, static_cast<int>(Roll() % 255 + 1), grid.shared_bytes);
    // Shared memory is another for each block, and lies at one place: blocks follow each other.
    Release(&set.begun);
    RunBlock(set);
    Acquire(&set.done);
  }
  running_set = nullptr;
}

std::string Running() {
  if (running_set == nullptr || running_place == nullptr) return "";
  return "kernel " + SymbolOf(running_set->grid->kernel) + ", block " + Text(running_place->block) +
         ", thread " + Text(running_place->thread);
}

void BlockBarrier(Site site) { Wait(Meeting::kBarrier, site, 0, 0, 0); }
int BlockCount(int value, Site site) {
  Wait(Meeting::kBarrier, site, 0, value != 0 ? 1 : 0, 0);
  return static_cast<int>(running_set->running->value);
}
std::uint64_t WarpExchange(unsigned mask, std::uint64_t value, int lane, Site site) {
  Wait(Meeting::kShuffle, site, mask, value, lane);
  return running_set->running->value;
}
unsigned WarpBallot(unsigned mask, bool value, Site site) {
  Wait(Meeting::kVote, site, mask, value ? 1 : 0, 0);
  return static_cast<unsigned>(running_set->running->value);
}
void WarpBarrier(unsigned mask, Site site) { Wait(Meeting::kWarp, site, mask, 0, 0); }
unsigned LaneOfWarp() { return static_cast<unsigned>(IndexOf(*running_set->running) % kWarp); }
void* DynamicSharedMemory() { return running_set->shared_at; }

}  // namespace patchbay::emulated_cuda
