// The usable cores, from the files of control groups of version 2.
#include "runtime/os/usable_cores.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"

namespace patchbay {
namespace {

/// A machine made of files, and the affinity of the test.
class Quotas : public testing::Test {
 protected:
  void SetUp() override {
    Write("/proc/self/mountinfo", "28 23 0:25 / /sys/fs/cgroup rw shared:4 - cgroup2 none rw\n");
    Write("/proc/self/cgroup", "0::/system.slice/patchbay.service\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void Quota(const std::string& group, std::string_view text) const {
    Write("/sys/fs/cgroup" + group + "/cpu.max", text);
  }
  const std::string root_ =
      (std::filesystem::temp_directory_path() / ("pbcores-" + Hex64(RandomU64()))).string();
  const std::int64_t all_ = UsableCores("/nowhere");
};

TEST_F(Quotas, WithoutOneTheAffinityCounts) {
  EXPECT_GE(all_, 1);
  EXPECT_EQ(UsableCores(root_), all_);
  Quota("/system.slice/patchbay.service", "max 100000\n");
  Quota("/system.slice", "max\n");
  EXPECT_EQ(UsableCores(root_), all_);
}

TEST_F(Quotas, AProcesssOwnGroupCountsAndAPartOfACoreIsOne) {
  Quota("/system.slice/other.service", "100000 100000\n");
  EXPECT_EQ(UsableCores(root_), all_);
  Quota("/system.slice/patchbay.service", "150000 100000\n");
  EXPECT_EQ(UsableCores(root_), std::min<std::int64_t>(all_, 2));
  Quota("/system.slice/patchbay.service", "1000 100000\n");
  EXPECT_EQ(UsableCores(root_), 1);
}

TEST_F(Quotas, TheTightestOfTheGroupsAroundItDecides) {
  Quota("/system.slice/patchbay.service", "800000 100000\n");
  Quota("/system.slice", "50000 50000\n");
  EXPECT_EQ(UsableCores(root_), 1);
}

TEST_F(Quotas, AContainerSeesItsOwnGroupAsTheRoot) {
  Write("/proc/self/cgroup", "0::/\n");
  Quota("", "100000 100000\n");
  EXPECT_EQ(UsableCores(root_), 1);
}

TEST_F(Quotas, HierarchiesOfVersion1AreNotLookedAt) {
  Write("/proc/self/mountinfo", "35 31 0:32 / /sys/fs/cgroup rw - cgroup cgroup rw,memory\n");
  Quota("", "100000 100000\n");
  EXPECT_EQ(UsableCores(root_), all_);
}

}  // namespace
}  // namespace patchbay
