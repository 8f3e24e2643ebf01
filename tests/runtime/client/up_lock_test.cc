#include "runtime/client/up_lock.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace patchbay::client {
namespace {

class UpLockTest : public ::testing::Test {
 protected:
  UpLockTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "patchbay-test-XXXXXX").string();
    environment_.home = mkdtemp(pattern.data());
  }
  ~UpLockTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(environment_.home, ignored);
  }

  Environment environment_;
};

TEST_F(UpLockTest, SaysWhetherAClusterStartsOrIsReadyUntilItIsDropped) {
  EXPECT_EQ(ClusterHere(environment_), ClusterState::kNone);
  {
    const auto lock = UpLock::Take(environment_);
    ASSERT_TRUE(lock.ok()) << Describe(lock.status());
    EXPECT_EQ(ClusterHere(environment_), ClusterState::kStarting);
    ASSERT_TRUE(lock->ReportReady().ok());
    EXPECT_EQ(ClusterHere(environment_), ClusterState::kReady);
  }
  EXPECT_EQ(ClusterHere(environment_), ClusterState::kNone);
  EXPECT_TRUE(UpLock::Take(environment_).ok());
}

TEST_F(UpLockTest, IsHeldByOneAtATime) {
  const auto lock = UpLock::Take(environment_);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(UpLock::Take(environment_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ClusterHere(environment_), ClusterState::kStarting);
}

TEST_F(UpLockTest, AnyNumberOfNodesServeBesideIt) {
  EXPECT_FALSE(NodeServesHere(environment_));
  auto first = HoldNodeServes(environment_);
  auto second = HoldNodeServes(environment_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(ClusterHere(environment_), ClusterState::kNone);
  const auto lock = UpLock::Take(environment_);
  ASSERT_TRUE(lock.ok() && lock->ReportReady().ok());
  first->Close();
  EXPECT_TRUE(NodeServesHere(environment_));
  second->Close();
  EXPECT_FALSE(NodeServesHere(environment_));
  EXPECT_EQ(ClusterHere(environment_), ClusterState::kReady);
}

TEST_F(UpLockTest, NeedsItsHome) {
  environment_.home += "/nowhere";
  EXPECT_EQ(UpLock::Take(environment_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(HoldNodeServes(environment_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(NodeServesHere(environment_));
}

}  // namespace
}  // namespace patchbay::client
