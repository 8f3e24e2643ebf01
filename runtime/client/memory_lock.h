// Memory that an RDMA device is given: the kernel counts it against a limit of the process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace patchbay::client {

/// RLIMIT_MEMLOCK of this process; nothing where there is none, and for one that may pass it
/// (CAP_IPC_LOCK).
std::optional<std::uint64_t> MemoryLockLimit();

/// Advice on the limit on locked memory, where a ring of so many bytes cannot be registered with an
/// RDMA device under it: the shortfall, and what to raise; "" where the limit lets it. Page-locked
/// memory for GPUs is not under this limit.
std::string MemoryLockAdvice(std::uint64_t ring_bytes, std::optional<std::uint64_t> limit);

}  // namespace patchbay::client
