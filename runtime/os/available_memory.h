// Memory of this machine that a process may still take: by the machine, by every control group
// around it (v1 and v2), by its own limits. The parsers are pure; AvailableMemory reads the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "runtime/core/status.h"

namespace patchbay {

/// An amount of memory and the limit that sets it, as messages name it.
struct MemoryBudget {
  std::uint64_t bytes = UINT64_MAX;
  std::string limit = "no limit";
};

/// A value in kB of a text such as /proc/meminfo, in bytes: "MemAvailable".
std::optional<std::uint64_t> MemoryFieldIn(std::string_view text, std::string_view field);

/// The control groups of a process that count memory, out of /proc/self/cgroup. Empty: none.
struct MemoryGroups {
  std::string v1, v2;
};
MemoryGroups MemoryGroupsIn(std::string_view proc_self_cgroup);

/// Where a hierarchy of control groups is mounted, out of /proc/self/mountinfo: `root` is the group
/// that `folder` shows (not "/" in most containers).
struct GroupMount {
  bool is_v2 = false;
  std::string root, folder;
};
std::vector<GroupMount> MemoryGroupMountsIn(std::string_view mountinfo);

/// The folders of a group and its parents up to the mount's own, innermost first.
std::vector<std::string> GroupFolders(const GroupMount& mount, std::string_view group);

/// memory.max or memory.limit_in_bytes; nullopt for "max", for v1's largest number and for text
/// that is no number.
std::optional<std::uint64_t> GroupLimitIn(std::string_view text);

/// Bytes of a group's use that are reclaimable page cache, from its memory.stat.
std::uint64_t ReclaimableIn(std::string_view memory_stat, bool is_v2);

/// Memory that this process may still take without swapping. `root` is where /proc and the control
/// groups are looked for: "" for the machine, a folder in tests, where RLIMIT_AS is left out.
MemoryBudget AvailableMemory(const std::string& root = "");

/// The most memory that this process may use together with those that share its limits.
MemoryBudget MemoryLimit(const std::string& root = "");

/// MemoryLimit, or the limit of this process alone if it is lower (RLIMIT_AS, RLIMIT_DATA).
MemoryBudget OwnMemoryLimit();

/// Resident memory of a process, of this one by default; 0 when the system does not say.
std::uint64_t ResidentBytes(pid_t pid = getpid());

/// The share of the available memory that may be requested at once: other processes need some too.
inline constexpr std::uint64_t kMemoryUsePercent = 90;

/// ResourceExhausted "<doing>: <amount> needed, <amount> of <amount> available ...": unless `bytes`
/// fit into kMemoryUsePercent of `room`.
Status CheckMemoryFits(std::string_view doing, std::uint64_t bytes, const MemoryBudget& room);

}  // namespace patchbay
