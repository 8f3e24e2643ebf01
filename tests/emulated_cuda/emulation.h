// The common state of the emulated device's parts: its settings, its dice, the one lock, and the
// report of errors that no correct program makes.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace patchbay::emulated_cuda {

inline constexpr int kMaxDevices = 4, kWarp = 32, kMaxThreads = 1'024;
// sm_80.
inline constexpr int kProcessors = 4;
inline constexpr std::size_t kSharedBytes = 48 << 10, kSharedOptinBytes = 163 << 10;
inline constexpr std::size_t kSharedOfProcessor = 164 << 10, kSharedReserved = 1 << 10;
inline constexpr std::size_t kParameterBytes = 4'096;
inline constexpr std::size_t kAlignment = 256;

/// When queued work runs.
enum class Pace : std::uint8_t {
  kEager,   ///< in the call that queues it
  kRandom,  ///< some of it in any call
  kLazy,    ///< when a call forces it
};

/// From the environment, read once: PATCHBAY_EMULATED_GPUS (0 to 4; default 0: no device),
/// PATCHBAY_EMULATED_GPU_ and SEED, PACE (by the seed unless given), BYTES (a device's memory),
/// OOM_AFTER and LOST_AFTER (allocations, pieces of work that still succeed), TIMELINE (a folder),
/// FAULT.
struct Settings {
  int devices = 0;
  std::uint64_t seed = 1;
  Pace pace = Pace::kEager;
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
  std::uint64_t out_of_memory_after = ~std::uint64_t{0}, lost_after = ~std::uint64_t{0};
  std::string fault;     ///< FAULT: machines on which GPUs cannot be used as usual, see faults.h
  std::string timeline;  ///< where each process lists its kernels and copies; empty: nowhere
};
const Settings& TheSettings();

/// Guards everything here: one call, one kernel, one copy at a time in a process.
std::recursive_mutex& TheLock();

/// Numbers that follow from the seed. Call under the lock.
std::uint64_t Roll();
inline bool OneIn(unsigned n) { return Roll() % n == 0; }

/// Ends the process: the program did something undefined on a device.
[[noreturn]] void Report(const std::string& what);

/// "function(arguments)" of an address of this program, for reports.
std::string SymbolOf(const void* address);

/// The thread that runs on the device now, for reports: "kernel X, block (0, 0, 0), thread (1, 0,
/// 0)"; empty on the host.
std::string Running();

/// Where a kernel's threads may be interrupted by a signal that names them. Set by memory.cc.
void InstallSignals();

}  // namespace patchbay::emulated_cuda
