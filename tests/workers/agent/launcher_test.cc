// The launcher with a shell script for a supervisor: who may own it, when it ends, and that nothing
// stays behind.
#include "workers/agent/launcher.h"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/workers/agent/watched_process.h"
#include "workers/process/child_process.h"

namespace patchbay::workers {
namespace {

/// Says its pid and the launcher's, is ready, and waits to be told to end.
constexpr const char* kServe =
    "echo start $$ $PPID >&$OUT; trap 'echo stop >&$OUT; exit 0' TERM; "
    "echo ready >&$2; while :; do read -t 1 line <&$IDLE; done";

/// The same, and does not stop before SIGINT.
constexpr const char* kAskTwice =
    "trap 'echo term >&$OUT' TERM; trap 'echo int >&$OUT; exit 0' INT; echo start $$ $PPID >&$OUT; "
    "echo ready >&$2; while :; do read -t 1 line <&$IDLE; done";

/// For this process and its children, as on a kernel before 5.3: pidfd_open fails with ENOSYS.
bool TakePidfdsAway() {
  std::array<sock_filter, 4> rules = {{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_pidfd_open},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  sock_fprog program{static_cast<unsigned short>(rules.size()), rules.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int ExitCodeOf(pid_t pid) {
  int wait_status = -1;
  waitpid(pid, &wait_status, 0);
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
}

/// One launcher, whose supervisor writes lines to the test. The test is its first owner.
class LauncherTest : public testing::Test {
 protected:
  void SetUp() override {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // the launcher detaches, and comes back to the test
    std::string name = (std::filesystem::temp_directory_path() / "patchbay-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    scratch_ = name;
    options_.folder = scratch_ + "/run";
    std::filesystem::create_directory(options_.folder);
    ASSERT_EQ(pipe(out_), 0);
    ASSERT_EQ(pipe(idle_), 0);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, link_), 0);
    options_.owner = getpid();
    options_.link_fd = link_[1];
    options_.lock_fd = open(scratch_.c_str(), O_RDONLY);
    options_.stop_ms = kPatienceMs;
  }
  void TearDown() override {
    for (const int fd : {out_[0], out_[1], idle_[0], idle_[1], link_[0], link_[1]}) Close(fd);
    Close(options_.lock_fd);
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    std::filesystem::remove_all(scratch_);
  }
  static void Close(int fd) {
    if (fd >= 0) close(fd);
  }

  /// Makes a supervisor of the script: $1 is --ready-fd, $2 its number.
  void Supervise(const std::string& script) {
    options_.supervisor = {scratch_ + "/supervisor"};
    std::ofstream(options_.supervisor[0])
        << "#!/bin/bash\nOUT=" << out_[1] << " IDLE=" << idle_[0] << " LINK=" << link_[1]
        << " LOCK=" << options_.lock_fd << "\n"
        << script << "\n";
    std::filesystem::permissions(options_.supervisor[0], std::filesystem::perms::owner_all);
  }
  /// The exit code of the caller's child, which is not yet the launcher.
  int Launch() {
    const pid_t first = fork();
    if (first == 0) {
      close(link_[0]);
      _exit(RunLauncher(options_));
    }
    close(std::exchange(link_[1], -1));
    close(std::exchange(out_[1], -1));
    return ExitCodeOf(first);
  }
  /// By another process, which is killed once the supervisor runs. The link stays open.
  void LaunchAndKillOwner(bool (*prepare)() = [] { return true; }) {
    const pid_t owner = fork();
    if (owner == 0) {
      options_.owner = getpid();
      if (!prepare() || Launch() != kExitDone) _exit(1);
      pause();
    }
    close(std::exchange(link_[1], -1));
    close(std::exchange(out_[1], -1));
    ReadPids();
    kill(owner, SIGKILL);
    waitpid(owner, nullptr, 0);
  }
  /// Waits for a supervisor that is ready.
  void ReadPids() {
    const std::string start = Said();
    ASSERT_EQ(start.substr(0, 6), "start ");
    launcher_ = PidOf(start);
    supervisor_ = PidOf(start.substr(0, start.rfind(' ')));
    ASSERT_EQ(LinkSays(), "ready");
  }
  /// Starts one that serves.
  void Serve() {
    Supervise(kServe);
    ASSERT_EQ(Launch(), kExitDone);
    ReadPids();
  }
  /// The shell takes signals that wait together in the order of their numbers.
  bool IsToldTwice() const {
    const std::string first = Said();
    return first == "int" || (first == "term" && Said() == "int");
  }
  std::string Said() const { return ReadLine(out_[0]); }
  std::string LinkSays() const { return ReadLine(link_[0]); }
  /// The supervisor was told to stop, and neither a process nor the folder is left.
  void ExpectOrderlyEnd() {
    EXPECT_EQ(Said(), "stop");
    ExpectEnd();
  }
  void ExpectEnd() {
    EXPECT_EQ(ExitCodeOf(launcher_), kExitDone);
    EXPECT_TRUE(EndsSoon(supervisor_));
    EXPECT_FALSE(std::filesystem::exists(options_.folder));
  }

  void Share(const std::string& hello) {
    options_.share =
        "patchbay-launcher-test-" + std::filesystem::path(scratch_).filename().string();
    options_.hello = hello;
  }
  /// A link of another owner, again in this process; -1 when no launcher listens.
  int Join() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, options_.share.data(), options_.share.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto length = offsetof(sockaddr_un, sun_path) + 1 + options_.share.size();
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(length)) == 0) {
      return fd;
    }
    close(fd);
    return -1;
  }

  LauncherOptions options_;
  std::string scratch_;
  int out_[2] = {-1, -1}, idle_[2] = {-1, -1}, link_[2] = {-1, -1};
  pid_t supervisor_ = 0, launcher_ = 0;
};

TEST_F(LauncherTest, StopsTheSupervisorWhenItsOwnerLeaves) {
  Serve();
  EXPECT_EQ(getsid(launcher_), launcher_);
  ASSERT_EQ(send(link_[0], &kLeaveByte, 1, 0), 1);
  EXPECT_EQ(LinkSays(), "");  // the end of the link, without a line, and only when all has ended
  EXPECT_NE(kill(supervisor_, 0), 0);
  ExpectOrderlyEnd();
}

TEST_F(LauncherTest, AnyOtherByteIsNoLeave) {
  Share("hello");
  Serve();
  ASSERT_EQ(send(link_[0], "x", 1, 0), 1);
  for (int i = 0; i < 2; ++i) {  // once the second is answered, the byte has been read
    const int other = Join();
    EXPECT_EQ(ReadLine(other), "hello");
    close(other);
  }
  EXPECT_EQ(send(link_[0], &kLeaveByte, 1, MSG_NOSIGNAL), 1);
  ExpectOrderlyEnd();
}

TEST_F(LauncherTest, StopsTheSupervisorWhenItsOwnerClosesTheLink) {
  Serve();
  close(std::exchange(link_[0], -1));
  ExpectOrderlyEnd();
}

TEST_F(LauncherTest, EndsWithASignal) {
  for (const int signal_number : {SIGTERM, SIGINT, SIGHUP}) {
    if (signal_number != SIGTERM) TearDown(), SetUp();
    Serve();
    kill(launcher_, signal_number);
    ExpectOrderlyEnd();
  }
}

TEST_F(LauncherTest, EndsWhenTheSupervisorEndsByItself) {
  Supervise("echo start $$ $PPID >&$OUT; echo failed >&$2");
  ASSERT_EQ(Launch(), kExitDone);
  launcher_ = PidOf(Said());
  EXPECT_EQ(LinkSays(), "failed");
  EXPECT_EQ(LinkSays(), "");
  ExpectEnd();
}

TEST_F(LauncherTest, TheSupervisorHasNeitherItsLinkNorItsLock) {
  Supervise(
      "for fd in $LINK $LOCK; do [ -e /proc/self/fd/$fd ] && echo has $fd >&$OUT; done; "
      "echo start $$ $PPID >&$OUT");
  ASSERT_EQ(Launch(), kExitDone);
  EXPECT_EQ(Said().substr(0, 5), "start");
}

TEST_F(LauncherTest, AdoptsWhatTheSupervisorLeavesAndWaitsForItsEnd) {
  Supervise(
      "echo start $$ $PPID >&$OUT; LEFT=$(sleep 60 >&- 2>&- & echo $!); echo left $LEFT >&$OUT");
  ASSERT_EQ(Launch(), kExitDone);
  launcher_ = PidOf(Said());
  const pid_t left = PidOf(Said());
  EXPECT_EQ(ParentOf(left), launcher_);
  pollfd link{link_[0], POLLIN, 0};
  EXPECT_EQ(poll(&link, 1, 300), 0) << "its owner is told of the end while something is left";
  kill(left, SIGKILL);
  ExpectEnd();
}

TEST_F(LauncherTest, GoesOnWhenSomethingElseThanTheSupervisorEnds) {
  Supervise(std::string("LEFT=$(sleep 60 >&- 2>&- & echo $!); echo left $LEFT >&$OUT; ") + kServe);
  ASSERT_EQ(Launch(), kExitDone);
  const pid_t left = PidOf(Said());
  ReadPids();
  kill(left, SIGKILL);
  EXPECT_TRUE(EndsSoon(left));
  while (kill(left, 0) == 0) sched_yield();  // until the launcher has buried it
  ASSERT_EQ(send(link_[0], &kLeaveByte, 1, MSG_NOSIGNAL), 1);
  ExpectOrderlyEnd();
}

TEST_F(LauncherTest, ReadsOnlySoMuchOfWhatTheSupervisorSays) {
  Supervise(
      "trap '' PIPE; echo start $$ $PPID >&$OUT; "
      "head -c 1000000 /dev/zero >&$2 2>&- && echo wrote it all >&$OUT || echo refused >&$OUT");
  ASSERT_EQ(Launch(), kExitDone);
  launcher_ = PidOf(Said());
  EXPECT_EQ(Said(), "refused");
  ExpectEnd();
}

TEST_F(LauncherTest, KillsWhatAnOwnerLeavesWhoIsKilled) {
  Supervise(kAskTwice);
  LaunchAndKillOwner();
  EXPECT_TRUE(IsToldTwice());
  ExpectEnd();
}

TEST_F(LauncherTest, WithoutPidfdsItStillSeesItsOwnerDie) {
  Supervise(kAskTwice);
  LaunchAndKillOwner(TakePidfdsAway);
  EXPECT_TRUE(IsToldTwice());
  ExpectEnd();
}

TEST_F(LauncherTest, HurriesASupervisorThatDoesNotStopInTime) {
  options_.stop_ms = 50;
  Supervise(kAskTwice);
  ASSERT_EQ(Launch(), kExitDone);
  ReadPids();
  ASSERT_EQ(send(link_[0], &kLeaveByte, 1, 0), 1);
  EXPECT_TRUE(IsToldTwice());
  ExpectEnd();
}

TEST_F(LauncherTest, RefusesAnOwnerThatIsNotItsParent) {
  Supervise(kServe);
  options_.owner = 1;
  EXPECT_EQ(Launch(), kExitFailed);
  EXPECT_EQ(Said(), "");
  EXPECT_FALSE(std::filesystem::exists(options_.folder)) << "the owner has ended";
}

TEST_F(LauncherTest, EndsWhenItsSupervisorIsNotThere) {
  options_.supervisor = {scratch_ + "/none"};
  ASSERT_EQ(Launch(), kExitDone);
  EXPECT_EQ(LinkSays(), "");
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  EXPECT_FALSE(std::filesystem::exists(options_.folder));
}

TEST_F(LauncherTest, WhoJoinsIsToldEverythingAndKeepsItWhenTheFirstLeaves) {
  Share("hello you");
  Serve();
  const int second = Join();
  EXPECT_EQ(ReadLine(second), "hello you");
  EXPECT_EQ(ReadLine(second), "ready");
  ASSERT_EQ(send(link_[0], &kLeaveByte, 1, 0), 1);
  EXPECT_EQ(LinkSays(), "left");
  EXPECT_EQ(LinkSays(), "");
  EXPECT_EQ(kill(supervisor_, 0), 0);
  close(second);
  ExpectOrderlyEnd();
  EXPECT_EQ(Join(), -1);
}

TEST_F(LauncherTest, ANameThatIsTakenEndsTheSecondWithItsFolder) {
  Share("hello");
  Serve();
  LauncherOptions second = options_;
  second.folder = scratch_ + "/second";
  std::filesystem::create_directory(second.folder);
  int link[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, link), 0);
  second.link_fd = link[1];
  const pid_t first = fork();
  if (first == 0) _exit(RunLauncher(second));
  close(link[1]);
  EXPECT_EQ(ExitCodeOf(first), kExitDone);
  EXPECT_EQ(ReadLine(link[0]) + "\n", kTakenLine);
  EXPECT_EQ(ReadLine(link[0]), "");
  EXPECT_FALSE(std::filesystem::exists(second.folder));
  EXPECT_TRUE(std::filesystem::exists(options_.folder));
  close(link[0]);
}

TEST_F(LauncherTest, ANameThatIsTooLongIsSaid) {
  Share("hello");
  options_.share.resize(sizeof(sockaddr_un::sun_path), 'x');
  Supervise(kServe);
  ASSERT_EQ(Launch(), kExitDone);
  EXPECT_EQ(LinkSays(), "failed launcher: cannot listen");
  EXPECT_EQ(Said(), "");
}

TEST_F(LauncherTest, HasSoManyOwnersAndNoMore) {
  constexpr int kMostOwners = 256;
  Share("hello");
  Serve();
  std::vector<int> links;
  for (int i = 1; i < kMostOwners; ++i) {
    links.push_back(Join());
    ASSERT_EQ(ReadLine(links.back()), "hello") << i;
  }
  const int one_more = Join();
  EXPECT_EQ(ReadLine(one_more), "");
  links.push_back(one_more);
  for (const int fd : links) close(fd);
}

TEST(OwnerWatch, SeesTheEndOfAProcessByADescriptorAndWithout) {
  for (const bool with_descriptor : {true, false}) {
    const pid_t watcher = fork();
    if (watcher == 0) {
      if (!with_descriptor && !TakePidfdsAway()) _exit(1);
      const pid_t pid = fork();
      if (pid == 0) pause(), _exit(0);
      const OwnerWatch watch(pid);
      if ((watch.fd() >= 0) != with_descriptor) _exit(2);
      if (watch.Ended()) _exit(3);
      kill(pid, SIGKILL);
      siginfo_t ended{};
      waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT);
      if (!watch.Ended()) _exit(4);  // a zombie
      waitpid(pid, nullptr, 0);
      if (!watch.Ended()) _exit(5);
      _exit(OwnerWatch(pid).Ended() ? 0 : 6);
    }
    EXPECT_EQ(ExitCodeOf(watcher), 0) << with_descriptor;
  }
}

TEST(LauncherArguments, AreReadAsDocumented) {
  LauncherOptions options;
  std::string error;
  ASSERT_TRUE(ParseLauncherArguments(
      {"--owner", "7", "--link", "0", "--folder", "/f", "--lock", "4", "--share", "s", "--hello",
       "h", "--stop-ms", "70", "--", "/supervisor", "--child", "--"},
      options, error))
      << error;
  EXPECT_EQ(options.owner, 7);
  EXPECT_EQ(options.link_fd, 0);
  EXPECT_EQ(options.lock_fd, 4);
  EXPECT_EQ(options.folder + options.share + options.hello, "/fsh");
  EXPECT_EQ(options.stop_ms, 70);
  EXPECT_EQ(options.supervisor, (std::vector<std::string>{"/supervisor", "--child", "--"}));
}

TEST(LauncherArguments, RefuseWhatIsWrong) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"--owner", "7", "--link", "0"},
      {"--owner", "7", "--link", "0", "--"},
      {"--link", "0", "--", "/s"},
      {"--owner", "0", "--link", "0", "--", "/s"},
      {"--owner", "7", "--", "/s"},
      {"--owner", "7", "--link", "--", "/s"},
      {"--owner", "7x", "--link", "0", "--", "/s"},
      {"--owner", "-7", "--link", "0", "--", "/s"},
      {"--owner", "7", "--link", "0", "--no", "1", "--", "/s"}};
  for (const auto& words : wrong) {
    LauncherOptions options;
    std::string error;
    EXPECT_FALSE(ParseLauncherArguments(words, options, error));
    EXPECT_FALSE(error.empty());
  }
}

}  // namespace
}  // namespace patchbay::workers
