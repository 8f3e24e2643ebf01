// Amounts of the resources that teams share: what they hold, may hold and are guaranteed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/wire/protocol/messages.h"

namespace patchbay::scheduler {

/// Indices of Amounts.
inline constexpr std::size_t kCores = 0, kGpus = 1, kMemory = 2, kResources = 3;

/// Thousandths of cores, GPUs and bytes of memory.
using Amounts = std::array<std::uint64_t, kResources>;

/// The part of `amounts` beyond `of`.
inline Amounts Beyond(const Amounts& amounts, const Amounts& of) {
  Amounts beyond = {};
  for (std::size_t i = 0; i < kResources; ++i) {
    beyond[i] = amounts[i] > of[i] ? amounts[i] - of[i] : 0;
  }
  return beyond;
}

/// The amounts of resources that the other has too.
inline Amounts Both(const Amounts& amounts, const Amounts& other) {
  Amounts both = {};
  for (std::size_t i = 0; i < kResources; ++i) both[i] = other[i] == 0 ? 0 : amounts[i];
  return both;
}

/// The need of a lease; what its account would hold in addition, and what its worker, which several
/// accounts may use, would be used for in addition.
struct Claim {
  Amounts need = {}, more = {}, used = {};
};

inline Amounts AmountsOf(const protocol::Resources& need) {
  return {need.cpu_millis, need.gpus, need.memory_bytes};
}

/// "cores", "gpus" or "memory": the keys of a file of teams.
const char* ResourceKey(std::size_t resource);

/// "1.5" for 1500 cores, "2" GPUs, "512 MiB".
std::string AmountText(std::size_t resource, std::uint64_t amount);
/// The noun behind it: "cores", "GPUs", "of memory".
const char* ResourceNoun(std::size_t resource);

/// "1.5" for 1500.
std::string CoresText(std::uint64_t millis);
/// Rounded up.
std::string MebibytesText(std::uint64_t bytes);
/// "1.0 cores, 1 GPUs, 512 MiB", without what is not needed.
std::string NeedText(const protocol::Resources& need);

}  // namespace patchbay::scheduler
