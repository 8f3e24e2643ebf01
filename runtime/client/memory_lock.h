// The limit on locked memory (RLIMIT_MEMLOCK), which memory registered with an RDMA device counts
// against.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace patchbay::client {

/// RLIMIT_MEMLOCK of this process, in bytes; nullopt without a limit, and for a process that may
/// exceed it (CAP_IPC_LOCK).
std::optional<std::uint64_t> MemoryLockLimit();

/// Advice for the user where a ring of `ring_bytes` cannot be registered with an RDMA device under
/// `limit`: the shortfall, and the limit to raise; "" where the ring fits. Page-locked memory for
/// GPUs does not count against this limit.
std::string MemoryLockAdvice(std::uint64_t ring_bytes, std::optional<std::uint64_t> limit);

}  // namespace patchbay::client
