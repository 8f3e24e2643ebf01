// The available memory, from the files of various kernels.
#include "runtime/os/available_memory.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/os/program_start.h"

namespace patchbay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

constexpr std::string_view kMeminfo =
    "MemTotal:       24684440 kB\n"
    "MemFree:         9613108 kB\n"
    "MemAvailable:   22177792 kB\n"
    "Buffers:          262340 kB\n";

constexpr std::string_view kV1Cgroup =
    "9:name=systemd:/\n4:memory:/jobs/7\n3:cpuset:/\n1:cpu,cpuacct:/jobs/7\n0::/\n";
constexpr std::string_view kV1Mounts =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr std::string_view kV2Mounts =
    "28 23 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(AvailableMemory, FieldsAreFoundByTheirWholeName) {
  EXPECT_EQ(MemoryFieldIn(kMeminfo, "MemAvailable"), std::uint64_t{22177792} * 1024);
  EXPECT_EQ(MemoryFieldIn(kMeminfo, "MemFree"), std::uint64_t{9613108} * 1024);
  EXPECT_EQ(MemoryFieldIn(kMeminfo, "Mem"), std::nullopt);
  EXPECT_EQ(MemoryFieldIn(kMeminfo, "SwapFree"), std::nullopt);
  EXPECT_EQ(MemoryFieldIn("VmLck:\t      64 kB\n", "VmLck"), 64u * 1024);
  EXPECT_EQ(MemoryFieldIn("MemAvailable: many\n", "MemAvailable"), std::nullopt);
  EXPECT_EQ(MemoryFieldIn("", "MemAvailable"), std::nullopt);
}

TEST(AvailableMemory, GroupsOfBothVersionsAreFound) {
  const MemoryGroups v1 = MemoryGroupsIn(kV1Cgroup);
  EXPECT_EQ(v1.v1, "/jobs/7");
  EXPECT_EQ(v1.v2, "/");
  const MemoryGroups v2 = MemoryGroupsIn("0::/user.slice/user-1000.slice/a:b.scope\n");
  EXPECT_EQ(v2.v1, "");
  EXPECT_EQ(v2.v2, "/user.slice/user-1000.slice/a:b.scope");
  EXPECT_EQ(MemoryGroupsIn("3:cpuset,memory,pids:/x\n").v1, "/x");
  EXPECT_EQ(MemoryGroupsIn("3:cpuset,memory2:/x\nnonsense\n\n").v1, "");
}

TEST(AvailableMemory, OnlyMountsThatCountMemoryAreTaken) {
  const auto v1 = MemoryGroupMountsIn(kV1Mounts);
  ASSERT_EQ(v1.size(), 2u);
  EXPECT_FALSE(v1[0].is_v2);
  EXPECT_EQ(v1[0].folder, "/sys/fs/cgroup/memory");
  EXPECT_TRUE(v1[1].is_v2);
  const auto odd = MemoryGroupMountsIn("1 2 0:3 /a\\040b /c\\040d rw - cgroup2 none rw\nx y - z\n");
  ASSERT_EQ(odd.size(), 1u);
  EXPECT_EQ(odd[0].root, "/a b");
  EXPECT_EQ(odd[0].folder, "/c d");
}

TEST(AvailableMemory, AGroupsParentsCountUpToWhatIsMounted) {
  EXPECT_THAT(GroupFolders({true, "/", "/cg"}, "/a/b"), ElementsAre("/cg/a/b", "/cg/a", "/cg"));
  EXPECT_THAT(GroupFolders({true, "/", "/cg"}, "/"), ElementsAre("/cg"));
  EXPECT_THAT(GroupFolders({false, "/docker/7", "/cg"}, "/docker/7/x"),
              ElementsAre("/cg/x", "/cg"));
  EXPECT_THAT(GroupFolders({false, "/docker/7", "/cg"}, "/docker/7"), ElementsAre("/cg"));
  EXPECT_THAT(GroupFolders({false, "/docker/7", "/cg"}, "/docker/77/x"), ElementsAre("/cg"));
}

TEST(AvailableMemory, NoLimitIsNoLimit) {
  EXPECT_EQ(GroupLimitIn("104857600\n"), 100 * kMiB);
  EXPECT_EQ(GroupLimitIn("0\n"), 0u);
  EXPECT_EQ(GroupLimitIn("max\n"), std::nullopt);
  EXPECT_EQ(GroupLimitIn("9223372036854771712\n"), std::nullopt);
  EXPECT_EQ(GroupLimitIn(""), std::nullopt);
}

TEST(AvailableMemory, PageCacheIsReclaimableAndSharedMemoryIsNot) {
  EXPECT_EQ(ReclaimableIn("anon 5\nfile 90\nshmem 50\ninactive_file 30\nactive_file 10\n", true),
            40u);
  EXPECT_EQ(ReclaimableIn("inactive_file 1\nactive_file 2\ntotal_inactive_file 30\n"
                          "total_active_file 10\ntotal_rss 7\n",
                          false),
            40u);
  EXPECT_EQ(ReclaimableIn("inactive_file\nactive_file x\n", true), 0u);
}

/// A machine made of files.
class Machine : public testing::Test {
 protected:
  void SetUp() override { Write("/proc/meminfo", kMeminfo); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const std::string root_ =
      (std::filesystem::temp_directory_path() / ("pbmachine-" + Hex64(RandomU64()))).string();
};

TEST_F(Machine, WithoutGroupsItsOwnMemoryCounts) {
  const MemoryBudget room = AvailableMemory(root_), limit = MemoryLimit(root_);
  EXPECT_EQ(room.bytes, std::uint64_t{22177792} * 1024);
  EXPECT_EQ(room.limit, "the machine's memory");
  EXPECT_EQ(limit.bytes, std::uint64_t{24684440} * 1024);
}

TEST_F(Machine, WithoutProcNothingIsKnown) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_EQ(AvailableMemory(root_).bytes, UINT64_MAX);
  EXPECT_TRUE(CheckMemoryFits("take", UINT64_MAX - 1, AvailableMemory(root_)).ok());
}

TEST_F(Machine, TheTightestV2GroupDecides) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/proc/self/mountinfo", kV2Mounts);
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/memory.max", "104857600\n");
  Write("/sys/fs/cgroup/a/memory.current", "73400320\n");
  Write("/sys/fs/cgroup/a/memory.stat", "inactive_file 20971520\nactive_file 10485760\n");
  EXPECT_EQ(AvailableMemory(root_).bytes, 60 * kMiB);
  EXPECT_EQ(AvailableMemory(root_).limit, "/sys/fs/cgroup/a/memory.max");
  EXPECT_EQ(MemoryLimit(root_).bytes, 100 * kMiB);
  Write("/sys/fs/cgroup/a/b/memory.max", "52428800\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "62914560\n");
  EXPECT_EQ(AvailableMemory(root_).bytes, 0u);  // above its limit, which was lowered
}

TEST_F(Machine, AV1GroupDecidesBesideAnEmptyV2Hierarchy) {
  Write("/proc/self/cgroup", kV1Cgroup);
  Write("/proc/self/mountinfo", kV1Mounts);
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "104857600\n");
  Write("/sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes", "94371840\n");
  Write("/sys/fs/cgroup/memory/jobs/7/memory.stat", "total_inactive_file 31457280\n");
  EXPECT_EQ(AvailableMemory(root_).bytes, 40 * kMiB);
  EXPECT_EQ(AvailableMemory(root_).limit, "/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes");
}

TEST(CheckMemoryFits, NineTenthsMayBeTakenAndTheLimitIsNamed) {
  const MemoryBudget room{1000 * kMiB, "memory.max"};
  EXPECT_TRUE(CheckMemoryFits("take", 899 * kMiB, room).ok());
  const Status refused = CheckMemoryFits("take", 901 * kMiB, room);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              testing::AllOf(HasSubstr("take: 901"), HasSubstr("(memory.max)")));
}

/// Runs in a child, whose limits and scores it may change: 0 is success.
int InChild(int (*run)()) {
  const pid_t pid = fork();
  if (pid == 0) _exit(run());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(AvailableMemory, ALimitOfTheAddressSpaceCounts) {
  EXPECT_EQ(InChild([] {
              // A gigabyte above the mapped memory: a sanitizer's shadow alone has terabytes.
              std::uint64_t mapped_pages = 0;
              std::ifstream("/proc/self/statm") >> mapped_pages;
              const rlim_t bytes =
                  mapped_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 1024 * kMiB;
              const rlimit limit{bytes, bytes};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
              return AvailableMemory().bytes <= 1100 * kMiB
                         ? 0
                         : 2;  // the mapped memory may be less by now
            }),
            0);
}

TEST(OomScore, IsRaisedAndNeverLowered) {
  EXPECT_EQ(InChild([] {
              const auto score = [] {
                int value = -1;
                std::ifstream("/proc/self/oom_score_adj") >> value;
                return value;
              };
              const int before = score();
              RaiseOomScore(900);
              if (score() != std::max(before, 900)) return 1;
              RaiseOomScore(500);
              return score() == std::max(before, 900) ? 0 : 2;
            }),
            0);
}

TEST(OwnMemoryLimit, IsLessWhereTheProcessMayHaveLess) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "AddressSanitizer itself maps more than any such limit";
#endif
#endif
  for (const auto resource : {RLIMIT_DATA, RLIMIT_AS}) {
    const auto limited = [resource] {
      const rlimit limit{4096 * kMiB, 4096 * kMiB};
      setrlimit(resource, &limit);
      const MemoryBudget own = OwnMemoryLimit();
      const bool is_named = own.limit.find("ulimit") != std::string::npos;
      std::exit(own.bytes == 4096 * kMiB && is_named ? 0 : 1);
    };
    EXPECT_EXIT(limited(), testing::ExitedWithCode(0), "");
  }
  EXPECT_LE(OwnMemoryLimit().bytes, MemoryLimit().bytes);
}

}  // namespace
}  // namespace patchbay
