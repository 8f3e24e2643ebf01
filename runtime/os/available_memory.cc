#include "runtime/os/available_memory.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
/// cgroup v1 expresses "no limit" as the largest multiple of a page that its counters hold.
constexpr std::uint64_t kNoGroupLimit = std::uint64_t{1} << 60;

/// A file of /proc or /sys, which has no size; empty when it cannot be read.
std::string ReadText(const std::string& path) {
  const auto fd = OpenFile(Folders::OfThisProcess(), path, 0);
  if (!fd.ok()) return "";
  std::string text;
  char block[4096];
  while (text.size() < kMaxTextBytes) {
    const ssize_t got = read(fd->get(), block, sizeof block);
    if (got <= 0) break;
    text.append(block, static_cast<std::size_t>(got));
  }
  return text;
}

/// Calls visit(line) for each line without its end.
template <typename Visit>
void ForEachLine(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = line.find(' ');
    if (end != 0) words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  return words;
}

std::optional<std::uint64_t> NumberIn(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// mountinfo writes blanks in names as \040.
std::string Unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size();
    if (!octal) {
      out += text[i];
      continue;
    }
    out +=
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0');
    i += 3;
  }
  return out;
}

bool HasWord(std::string_view list, std::string_view word) {
  while (true) {
    const std::size_t end = list.find(',');
    if (list.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
}

void TakeSmaller(MemoryBudget& room, std::uint64_t bytes, std::string limit) {
  if (bytes < room.bytes) room = {bytes, std::move(limit)};
}

/// One group with a limit.
struct LimitedGroup {
  std::string limit_file;
  std::uint64_t limit = 0, used = 0, reclaimable = 0;
};

std::vector<LimitedGroup> LimitedGroups(const std::string& root) {
  const MemoryGroups groups = MemoryGroupsIn(ReadText(root + "/proc/self/cgroup"));
  std::vector<LimitedGroup> out;
  for (const GroupMount& mount : MemoryGroupMountsIn(ReadText(root + "/proc/self/mountinfo"))) {
    const std::string& group = mount.is_v2 ? groups.v2 : groups.v1;
    if (group.empty()) continue;
    for (const std::string& folder : GroupFolders(mount, group)) {
      LimitedGroup found;
      found.limit_file = folder + (mount.is_v2 ? "/memory.max" : "/memory.limit_in_bytes");
      const auto limit = GroupLimitIn(ReadText(root + found.limit_file));
      if (!limit) continue;
      found.limit = *limit;
      const char* usage = mount.is_v2 ? "/memory.current" : "/memory.usage_in_bytes";
      found.used = NumberIn(ReadText(root + folder + usage)).value_or(0);
      found.reclaimable = ReclaimableIn(ReadText(root + folder + "/memory.stat"), mount.is_v2);
      out.push_back(std::move(found));
    }
  }
  return out;
}

/// Applies the rest of this process's address space under RLIMIT_AS.
void TakeAddressSpace(MemoryBudget& room) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t used = NumberIn(ReadText("/proc/self/statm")).value_or(0) * page_bytes;
  TakeSmaller(room, limit.rlim_cur > used ? limit.rlim_cur - used : 0, "RLIMIT_AS (ulimit -v)");
}

}  // namespace

std::uint64_t ResidentBytes(pid_t pid) {
  const std::string pages = ReadText(StrCat("/proc/", pid, "/statm"));
  const std::string_view resident =
      std::string_view(pages).substr(std::min(pages.find(' ') + 1, pages.size()));
  return NumberIn(resident).value_or(0) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> MemoryFieldIn(std::string_view text, std::string_view field) {
  std::optional<std::uint64_t> found;
  ForEachLine(text, [&](std::string_view line) {
    if (found || !line.starts_with(field) || line.substr(field.size(), 1) != ":") return;
    if (const auto value = NumberIn(line.substr(field.size() + 1))) found = *value * 1024;
  });
  return found;
}

MemoryGroups MemoryGroupsIn(std::string_view proc_self_cgroup) {
  MemoryGroups out;
  ForEachLine(proc_self_cgroup, [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (line.starts_with("0::")) out.v2 = path;
    if (HasWord(controllers, "memory")) out.v1 = path;
  });
  return out;
}

std::vector<GroupMount> MemoryGroupMountsIn(std::string_view mountinfo) {
  std::vector<GroupMount> out;
  ForEachLine(mountinfo, [&](std::string_view line) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) return;
    // 31 23 0:28 ROOT FOLDER options [tags] - TYPE SOURCE OPTIONS
    const auto before = WordsOf(line.substr(0, dash)), after = WordsOf(line.substr(dash + 3));
    if (before.size() < 5 || after.size() < 3) return;
    const bool is_v2 = after[0] == "cgroup2";
    if (!is_v2 && !(after[0] == "cgroup" && HasWord(after[2], "memory"))) return;
    out.push_back({is_v2, Unescape(before[3]), Unescape(before[4])});
  });
  return out;
}

std::vector<std::string> GroupFolders(const GroupMount& mount, std::string_view group) {
  // Below the mount's root; a group outside it is not shown, and the root's limits hold all the
  // same.
  std::string_view below = group;
  const std::string_view root = mount.root == "/" ? std::string_view() : mount.root;
  const bool is_shown =
      below.starts_with(root) && (below.size() == root.size() || below[root.size()] == '/');
  below = is_shown ? below.substr(root.size()) : std::string_view();
  std::vector<std::string> out;
  while (!below.empty() && below != "/") {
    out.push_back(mount.folder + std::string(below));
    below = below.substr(0, below.rfind('/'));
  }
  out.push_back(mount.folder);
  return out;
}

std::optional<std::uint64_t> GroupLimitIn(std::string_view text) {
  const auto value = NumberIn(text);
  return value && *value < kNoGroupLimit ? value : std::nullopt;
}

std::uint64_t ReclaimableIn(std::string_view memory_stat, bool is_v2) {
  std::uint64_t sum = 0;
  ForEachLine(memory_stat, [&](std::string_view line) {
    const auto words = WordsOf(line);
    if (words.size() != 2) return;
    const std::string_view name =
        !is_v2 && words[0].starts_with("total_") ? words[0].substr(6) : words[0];
    const bool counts = (name == "inactive_file" || name == "active_file") &&
                        (is_v2 || words[0].starts_with("total_"));
    if (counts) sum += NumberIn(words[1]).value_or(0);
  });
  return sum;
}

MemoryBudget AvailableMemory(const std::string& root) {
  MemoryBudget room;
  if (const auto bytes = MemoryFieldIn(ReadText(root + "/proc/meminfo"), "MemAvailable")) {
    room = {*bytes, "the machine's memory"};
  }
  for (const LimitedGroup& group : LimitedGroups(root)) {
    const std::uint64_t held = group.used - std::min(group.used, group.reclaimable);
    TakeSmaller(room, group.limit - std::min(group.limit, held), group.limit_file);
  }
  if (root.empty()) TakeAddressSpace(room);
  return room;
}

MemoryBudget MemoryLimit(const std::string& root) {
  MemoryBudget room;
  if (const auto bytes = MemoryFieldIn(ReadText(root + "/proc/meminfo"), "MemTotal")) {
    room = {*bytes, "the machine's memory"};
  }
  for (const LimitedGroup& group : LimitedGroups(root)) {
    TakeSmaller(room, group.limit, group.limit_file);
  }
  return room;
}

MemoryBudget OwnMemoryLimit() {
  MemoryBudget room = MemoryLimit();
  for (const auto& [resource, name] : {std::pair(RLIMIT_AS, "RLIMIT_AS (ulimit -v)"),
                                       std::pair(RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)")}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    TakeSmaller(room, limit.rlim_cur, name);
  }
  return room;
}

Status CheckMemoryFits(std::string_view doing, std::uint64_t bytes, const MemoryBudget& room) {
  if (room.bytes == UINT64_MAX || bytes <= room.bytes / 100 * kMemoryUsePercent) {
    return absl::OkStatus();
  }
  return ResourceExhausted(doing, ": ", HumanBytes(bytes), " needed, ", HumanBytes(room.bytes),
                           " available (", room.limit, "), of which ", kMemoryUsePercent,
                           " % may be taken");
}

}  // namespace patchbay
