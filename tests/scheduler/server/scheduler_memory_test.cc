// Submitters cannot take the memory of the scheduler's machine: it runs in a control group of its
// own, with less memory than is sent to it.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/os/file.h"
#include "runtime/wire/control/session.h"
#include "tests/scheduler/server/scheduler_process.h"

namespace patchbay::scheduler {
namespace {

constexpr TimeMs kCrowdedPatienceMs = 60'000;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGroupBytes = 384 * kMiB;

/// A control group with a limit of memory, by version 1 or 2; `folder` is empty where none can be
/// made.
class MemoryGroup {
 public:
  MemoryGroup() {
    const std::string name = StrCat("/patchbay-test-", Hex64(RandomU64()));
    for (const auto& [parent, limit] : {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                        std::pair{"/sys/fs/cgroup", "memory.max"}}) {
      std::error_code error;
      folder = parent + name;
      if (std::filesystem::create_directory(folder, error)) {
        std::ofstream(folder + "/" + limit) << kGroupBytes << std::flush;
        std::ifstream back(folder + "/" + limit);
        std::uint64_t bytes = 0;
        if (back >> bytes && bytes == kGroupBytes) return;
        std::filesystem::remove(folder, error);
      }
    }
    folder.clear();
  }
  ~MemoryGroup() {
    if (folder.empty()) return;
    std::ifstream members(folder + "/cgroup.procs");
    for (pid_t pid = 0; members >> pid;) AwaitExit(pid);
    EXPECT_EQ(rmdir(folder.c_str()), 0) << folder;
  }
  std::string folder;

 private:
  /// Ends that process, if it is there, and waits for the kernel's proof.
  static void AwaitExit(pid_t pid) {
    const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid()) return;
    kill(pid, SIGKILL);
    pollfd ended{process.get(), POLLIN, 0};
    poll(&ended, 1, -1);
  }
};

class SchedulerMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (group_.folder.empty()) GTEST_SKIP() << "no control group can be made here";
    process_.set_group(group_.folder + "/cgroup.procs");
    key_ = process_.NewKey("ann", control::Role::kSubmitter);
    ASSERT_EQ(process_.Start(), 0) << process_.errors();
    Connect();
  }
  void Connect() {
    auto client = control::RequestClient::Open(key_, kCrowdedPatienceMs);
    ASSERT_TRUE(client.ok()) << Describe(client.status()) << process_.errors();
    client_ = *std::move(client);
  }
  /// A job of 3 MiB.
  StatusOr<protocol::JobSubmitted> Submit() {
    protocol::SubmitJob job;
    job.submission_key = StrCat("key ", ++submitted_);
    job.kind = job.root.op = "noop";
    job.manifest.assign(2 * kMiB, 'm');
    job.root.payload.assign(kMiB, 'p');
    return client_->CallFor<protocol::JobSubmitted>(job, kCrowdedPatienceMs);
  }
  bool Answers() { return client_->Call(protocol::DescribeCluster{}, kCrowdedPatienceMs).ok(); }

  MemoryGroup group_;
  SchedulerProcess process_;
  control::KeyFile key_;
  std::unique_ptr<control::RequestClient> client_;
  int submitted_ = 0;
};

TEST_F(SchedulerMemory, IsNotTakenByWhatIsSubmittedAndCancelled) {
  auto job = Submit();
  for (; job.ok() && submitted_ < 300; job = Submit()) {
  }
  // A sixteenth of the group's memory: an eighth for open jobs, half of it for submissions.
  EXPECT_EQ(job.status().code(), absl::StatusCode::kResourceExhausted) << Describe(job.status());
  EXPECT_NE(MessageOf(job.status()).find("would exceed 24.0 MiB"), std::string_view::npos);
  EXPECT_EQ(submitted_, 8);
  for (JobId id = 1; id < 150; ++id) {
    ASSERT_TRUE(client_->Call(protocol::CancelJob{id}, kCrowdedPatienceMs).ok()) << id;
    ASSERT_TRUE(Submit().ok()) << process_.errors();
  }
  EXPECT_TRUE(Answers());
  // The journal holds more than the group's memory; the replay does not keep it either.
  client_.reset();
  process_.Kill();
  ASSERT_EQ(process_.Start(), 0) << process_.errors();
  Connect();
  EXPECT_FALSE(Submit().ok());
  EXPECT_TRUE(Answers());
}

}  // namespace
}  // namespace patchbay::scheduler
