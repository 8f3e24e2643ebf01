// The supervisor with shell scripts for programs: restarts, orderly stops, and nothing left behind.
#include "workers/agent/supervisor.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/workers/agent/watched_process.h"

namespace patchbay::workers {
namespace {

/// Says its name and pid, is ready, and waits to be told to end.
constexpr const char* kServeNamed =
    "trap 'echo told $NAME >&$OUT' USR1; "
    "echo start $NAME $$ >&$OUT; trap 'echo stop $NAME >&$OUT; exit 0' TERM; "
    "echo ready >&$2; while :; do read -t 1 line <&$IDLE; done";

/// The same, with heartbeats.
constexpr const char* kBeat =
    "echo start $NAME $$ >&$OUT; echo >&$2; echo ready >&$2; "
    "while :; do read -t 0.25 line <&$IDLE; echo >&$2; done";

/// A supervisor in a process of its own, whose programs write lines to the test.
class SupervisorTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(out_), 0);
    ASSERT_EQ(pipe(idle_), 0);
    ASSERT_EQ(pipe2(ready_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    if (supervisor_ > 0) kill(supervisor_, SIGKILL), waitpid(supervisor_, nullptr, 0);
    for (const int fd : {out_[0], out_[1], idle_[0], idle_[1], ready_[0], ready_[1]}) close(fd);
  }

  SupervisedProgram Script(const std::string& name, const std::string& script) const {
    const std::string head = "NAME=" + name + " OUT=" + std::to_string(out_[1]) +
                             " IDLE=" + std::to_string(idle_[0]) + "; ";
    return {name, {"/bin/bash", "-c", head + script, "script"}};
  }

  void Start(std::vector<SupervisedProgram> programs, long stop_ms = kPatienceMs) {
    supervisor_ = fork();
    if (supervisor_ != 0) return;
    before_();
    SupervisorOptions options;
    options.programs = std::move(programs);
    options.ready_fd = ready_[1];
    options.stop_ms = stop_ms;
    options.notify = notify_;
    _exit(RunSupervisor(options));
  }

  std::string Said() const { return ReadLine(out_[0]); }
  std::string Ready() const { return ReadLine(ready_[0]); }
  int ExitCode() {
    int wait_status = -1;
    waitpid(supervisor_, &wait_status, 0);
    supervisor_ = 0;
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  }

  int out_[2], idle_[2], ready_[2];
  pid_t supervisor_ = 0;
  std::string notify_;
  /// In the supervisor's process, before it begins.
  std::function<void()> before_ = [] {};
};

TEST_F(SupervisorTest, StartsProgramsInOrderAndSaysWhenAllAreReady) {
  Start({Script("first", kServeNamed), Script("second", kServeNamed)});
  EXPECT_EQ(Said().substr(0, 11), "start first");
  EXPECT_EQ(Ready(), "first ready");
  EXPECT_EQ(Said().substr(0, 12), "start second");
  EXPECT_EQ(Ready(), "second ready");
  EXPECT_EQ(Ready(), "ready");
}

TEST_F(SupervisorTest, StartsNothingBeforeTheOneBeforeIsReady) {
  Start({Script("first", std::string("echo start first $$ >&$OUT; read -t 0.3 line <&$IDLE; "
                                     "echo is almost ready >&$OUT; ") +
                             kServeNamed),
         Script("second", kServeNamed)});
  EXPECT_EQ(Said().substr(0, 11), "start first");
  EXPECT_EQ(Said(), "is almost ready");
}

/// The place of a service manager: an abstract datagram socket.
class ServiceSocket {
 public:
  ServiceSocket() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socklen_t length = sizeof(sa_family_t);  // the kernel chooses a name
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    length = sizeof(address);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    name_ = "@" + std::string(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  }
  ~ServiceSocket() { close(fd_); }

  const std::string& name() const { return name_; }
  /// The next message within `limit_ms`, or "".
  std::string Heard(int limit_ms = kPatienceMs) const {
    char text[256];
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, limit_ms) != 1) return "";
    return {text, static_cast<std::size_t>(std::max<ssize_t>(read(fd_, text, sizeof(text)), 0))};
  }

 private:
  int fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  std::string name_;
};

TEST_F(SupervisorTest, TellsTheServiceManagerWhenAllAreReadyThatItRunsAndThatItStops) {
  const ServiceSocket manager;
  notify_ = manager.name();
  Start({Script("first", "echo start first >&$OUT; echo ready >&$2; exec sleep 600"),
         Script("second",
                std::string("echo start second >&$OUT; read word <&$IDLE; ") + kServeNamed)});
  Said(), Said();
  EXPECT_EQ(manager.Heard(0), "");
  ASSERT_EQ(write(idle_[1], "go\n", 3), 3);
  EXPECT_EQ(manager.Heard(), "READY=1\nWATCHDOG=1");
  EXPECT_EQ(manager.Heard(), "READY=1\nWATCHDOG=1");
  kill(supervisor_, SIGTERM);
  EXPECT_EQ(manager.Heard(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=5000000");
  EXPECT_EQ(ExitCode(), kExitStopped);
}

TEST_F(SupervisorTest, AServiceManagerThatIsGoneOrMisspeltChangesNothing) {
  for (const std::string& address : {std::string("/none/notify"), std::string(4096, 'x')}) {
    notify_ = address;
    Start({Script("only", kServeNamed)});
    EXPECT_EQ(Said().substr(0, 10), "start only");
    while (Ready() != "ready") {
    }
    kill(supervisor_, SIGTERM);
    EXPECT_EQ(Said(), "stop only");
    EXPECT_EQ(ExitCode(), kExitStopped);
  }
}

TEST_F(SupervisorTest, GivesEachProgramAGroupOfItsOwn) {
  Start({Script("only", kServeNamed)});
  const pid_t pid = PidOf(Said());
  EXPECT_EQ(getpgid(pid), pid);
}

TEST_F(SupervisorTest, HalfALineOfALifeThatEndedIsForgotten) {
  Start({Script("only",
                "echo start only $$ >&$OUT; read word <&$IDLE; "
                "[ $word = half ] && printf rea >&$2 && exit 1; echo ready >&$2; exit 3")});
  Said();
  ASSERT_EQ(write(idle_[1], "half\n", 5), 5);
  Said();
  ASSERT_EQ(write(idle_[1], "whole\n", 6), 6);
  EXPECT_EQ(Ready(), "only ready");
}

TEST_F(SupervisorTest, StopsProgramsInReverseOrderOnSigtermAndTellsTheOtherAtOnce) {
  Start({Script("first", kServeNamed),
         Script("second",
                "echo start second $$ >&$OUT; trap 'echo asked >&$OUT' TERM; trap 'exit 0' USR2; "
                "echo ready >&$2; while :; do read -t 1 line <&$IDLE; done")});
  Said();
  const pid_t second = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(supervisor_, SIGTERM);
  const std::set<std::string> said{Said(), Said()};
  EXPECT_EQ(said, (std::set<std::string>{"told first", "asked"}));
  kill(second, SIGUSR2);
  EXPECT_EQ(Said(), "stop first");
  EXPECT_EQ(ExitCode(), kExitStopped);
}

TEST_F(SupervisorTest, AStopThatTheParentPassesOnIsNotTheSecond) {
  Start({Script("only",
                "echo start only $$ >&$OUT; "
                "trap 'echo stop only >&$OUT; read word <&$IDLE; echo done >&$OUT; exit 0' TERM; "
                "echo ready >&$2; while :; do read -t 1 line <&$IDLE; done")});
  const pid_t pid = PidOf(Said());
  while (Ready() != "ready") {
  }
  KillAsAStranger(supervisor_, SIGTERM);
  EXPECT_EQ(Said(), "stop only");
  kill(supervisor_, SIGTERM);
  EXPECT_TRUE(TakesItsSignals(supervisor_));
  EXPECT_EQ(kill(pid, 0), 0) << "it may go on";
  ASSERT_EQ(write(idle_[1], "go\n", 3), 3);
  EXPECT_EQ(Said(), "done");
  EXPECT_EQ(ExitCode(), kExitStopped);
}

TEST_F(SupervisorTest, AProgramThatASignalEndsBeforeItListensForOneIsStopped) {
  for (const std::string number : {"TERM", "INT"}) {
    Start({Script("only", "echo start only $$ >&$OUT; kill -" + number + " $$; sleep 60")});
    Said();
    EXPECT_EQ(ExitCode(), kExitStopped);
  }
}

TEST_F(SupervisorTest, StopsOnEveryOneOfItsSignals) {
  for (const int signal_number : {SIGINT, SIGHUP}) {
    Start({Script("only", kServeNamed)});
    Said();
    while (Ready() != "ready") {
    }
    kill(supervisor_, signal_number);
    EXPECT_EQ(Said(), "stop only");
    EXPECT_EQ(ExitCode(), kExitStopped);
  }
}

TEST_F(SupervisorTest, SaysThatItHasNoDescriptorForAProgram) {
  before_ = [] {
    const int next = dup(0);
    close(next);
    const rlimit limit{static_cast<rlim_t>(next) + 2, static_cast<rlim_t>(next) + 2};
    setrlimit(RLIMIT_NOFILE, &limit);
  };
  Start({Script("only", kServeNamed)});
  EXPECT_EQ(Ready(), "failed only: no pipe: too many open files");
  EXPECT_EQ(ExitCode(), kExitFailed);
}

TEST_F(SupervisorTest, RestartsAProgramThatIsKilled) {
  Start({Script("only", kServeNamed)});
  const pid_t first = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(first, SIGKILL);
  const std::string again = Said();
  EXPECT_EQ(again.substr(0, 10), "start only");
  EXPECT_NE(PidOf(again), first);
}

TEST_F(SupervisorTest, RestartsTheSecondOfTwoAndLeavesNoDescriptorBehind) {
  Start({Script("first", kServeNamed), Script("second", kServeNamed)});
  Said();
  pid_t second = PidOf(Said());
  while (Ready() != "ready") {
  }
  const auto open_now = [&] {
    const std::string folder = "/proc/" + std::to_string(supervisor_) + "/fd";
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  const auto before = open_now();
  for (int i = 0; i < 2; ++i) {
    kill(second, SIGKILL);
    const std::string again = Said();
    ASSERT_EQ(again.substr(0, 12), "start second");
    second = PidOf(again);
  }
  EXPECT_LE(open_now(), before + 1);  // the newest pipe's other end may be open still
}

TEST_F(SupervisorTest, AdoptsWhatAProgramLeavesBehind) {
  Start({Script("only", std::string("LEFT=$(sleep 60 >&- 2>&- & echo $!); "
                                    "echo left $LEFT >&$OUT; ") +
                            kServeNamed)});
  const pid_t left = PidOf(Said());
  EXPECT_EQ(ParentOf(left), supervisor_);
  kill(left, SIGKILL);
}

TEST_F(SupervisorTest, ReplacesAProgramThatFreezesAtOnceAsItHadLived) {
  int said[2];
  ASSERT_EQ(pipe(said), 0);
  before_ = [&] { dup2(said[1], STDERR_FILENO); };
  Start({Script("only", kBeat)});
  const pid_t first = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(first, SIGSTOP);
  EXPECT_EQ(ReadLine(said[0]), "supervisor: only does not respond, killing it");
  EXPECT_EQ(ReadLine(said[0]),
            "supervisor: only ended with signal 9 (Killed), starting it again in 0 ms");
  const std::string again = Said();
  EXPECT_EQ(again.substr(0, 10), "start only");
  EXPECT_NE(PidOf(again), first);
  EXPECT_TRUE(EndsSoon(first));
  close(said[0]), close(said[1]);
}

TEST_F(SupervisorTest, AProgramThatStartsAgainHasAsLongForItsFirstHeartbeat) {
  Start({Script("only",
                "echo start only $$ >&$OUT; read word <&$IDLE; "
                "[ $word = beat ] && echo >&$2 && echo ready >&$2 && exit 1; "
                "read -t 2 line <&$IDLE; echo still here >&$OUT; read line <&$IDLE")});
  Said();
  ASSERT_EQ(write(idle_[1], "beat\nnone\n", 10), 10);
  EXPECT_EQ(Said().substr(0, 10), "start only");
  EXPECT_EQ(Said(), "still here");
}

TEST_F(SupervisorTest, AProgramThatClosedItsPipeIsEndingNotFrozen) {
  Start({Script("only",
                "echo >&$2; echo ready >&$2; eval \"exec $2>&-\"; read -t 2 line <&$IDLE; "
                "echo ended by itself >&$OUT")});
  EXPECT_EQ(Said(), "ended by itself");
  EXPECT_EQ(ExitCode(), kExitDone);
}

TEST_F(SupervisorTest, AFrozenProgramDoesNotHoldUpTheStop) {
  Start({Script("only", kBeat)}, 100 * kPatienceMs);
  const pid_t pid = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(pid, SIGSTOP);
  kill(supervisor_, SIGTERM);
  ASSERT_TRUE(EndsSoon(pid));
  EXPECT_EQ(ExitCode(), kExitStopped);
}

TEST_F(SupervisorTest, DoesNotRestartWhatCannotStart) {
  Start({Script("good", kServeNamed), Script("bad", "echo start bad $$ >&$OUT; exit 2")});
  EXPECT_EQ(Said().substr(0, 10), "start good");
  EXPECT_EQ(Said().substr(0, 9), "start bad");
  EXPECT_EQ(Ready(), "good ready");
  EXPECT_EQ(Ready(), "failed bad: exit code 2");
  EXPECT_EQ(Said(), "told good");
  EXPECT_EQ(Said(), "stop good");
  EXPECT_EQ(ExitCode(), kExitCannotStart);
}

TEST_F(SupervisorTest, ReportsAProgramThatIsNotThere) {
  Start({{"none", {"/no/such/program"}}});
  EXPECT_EQ(Ready(), "failed none: exit code 2");
  EXPECT_EQ(ExitCode(), kExitCannotStart);
}

TEST_F(SupervisorTest, GivesUpOnWhatCrashesBeforeItIsEverReady) {
  const auto begun = std::chrono::steady_clock::now();
  Start({Script("bad", "echo start bad $$ >&$OUT; exit 1")});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Said().substr(0, 9), "start bad");
  EXPECT_GE(std::chrono::steady_clock::now() - begun,
            std::chrono::milliseconds((1 + 2 + 4 + 8) * RestartDelay::kFirstRestartDelayMs));
  EXPECT_EQ(Ready(), "failed bad: exit code 1");
  EXPECT_EQ(ExitCode(), kExitFailed);
}

TEST_F(SupervisorTest, RestartsWhatExitsWithTwoAfterItWasReady) {
  Start({Script("only", "echo start only $$ >&$OUT; echo ready >&$2; exit 2")});
  Said();
  EXPECT_EQ(Said().substr(0, 10), "start only");
}

TEST_F(SupervisorTest, DoesNotRestartWhatHasGivenUpAlsoAfterItWasReady) {
  Start({Script("only", "echo start only $$ >&$OUT; echo ready >&$2; exit 3")});
  EXPECT_EQ(Said().substr(0, 10), "start only");
  EXPECT_EQ(ExitCode(), kExitCannotStart);
  EXPECT_EQ(Ready(), "only ready");
  EXPECT_EQ(Ready(), "ready");
  EXPECT_EQ(Ready(), "failed only: it has given up");
}

TEST_F(SupervisorTest, PassesOnWhyAProgramHasGivenUp) {
  Start({Script("only", "echo ready >&$2; echo failed no worker can start >&$2; exit 3")});
  EXPECT_EQ(ExitCode(), kExitCannotStart);
  EXPECT_EQ(Ready(), "only ready");
  EXPECT_EQ(Ready(), "ready");
  EXPECT_EQ(Ready(), "failed only: no worker can start");
}

TEST_F(SupervisorTest, ReadyIsSaidOnceHoweverOftenAProgramSaysIt) {
  Start({Script("only", "echo ready >&$2; echo ready again >&$2; exit 3")});
  EXPECT_EQ(ExitCode(), kExitCannotStart);
  EXPECT_EQ(Ready(), "only ready");
  EXPECT_EQ(Ready(), "ready");
  EXPECT_EQ(Ready(), "failed only: it has given up");
}

TEST_F(SupervisorTest, KeepsOnlySoMuchOfALine) {
  constexpr std::size_t kLineMax = 4096;
  Start({Script("only", "echo ready $(head -c 6000 /dev/zero | tr '\\0' x) >&$2; exit 3")});
  EXPECT_EQ(ExitCode(), kExitCannotStart);
  EXPECT_EQ(Ready().size(), std::string("only ").size() + kLineMax);
  EXPECT_EQ(Ready(), "ready");
}

TEST_F(SupervisorTest, EndsWhenAProgramEndsOnPurpose) {
  Start({Script("first", kServeNamed),
         Script("second", "echo start second $$ >&$OUT; echo ready >&$2; exit 0")});
  EXPECT_EQ(Said().substr(0, 11), "start first");
  EXPECT_EQ(Said().substr(0, 12), "start second");
  EXPECT_EQ(Said(), "told first");
  EXPECT_EQ(Said(), "stop first");
  EXPECT_EQ(ExitCode(), kExitDone);
}

TEST_F(SupervisorTest, KillsWhatDoesNotStopInTime) {
  Start({Script("stubborn",
                "trap '' TERM; echo start stubborn $$ >&$OUT; echo ready >&$2; "
                "while :; do read -t 1 line <&$IDLE; done")},
        50);
  const pid_t pid = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(supervisor_, SIGTERM);
  EXPECT_EQ(ExitCode(), kExitStopped);
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(SupervisorTest, ASecondSignalKillsAtOnce) {
  Start({Script("stubborn",
                "trap 'echo asked >&$OUT' TERM; echo start stubborn $$ >&$OUT; echo ready >&$2; "
                "while :; do read -t 1 line <&$IDLE; done")});
  const pid_t pid = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(supervisor_, SIGTERM);
  EXPECT_EQ(Said(), "asked");
  kill(supervisor_, SIGTERM);
  EXPECT_EQ(ExitCode(), kExitStopped);
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(SupervisorTest, ItsOwnDeathTakesTheProgramsAlong) {
  Start({Script("first", kServeNamed), Script("second", kServeNamed)});
  const pid_t first = PidOf(Said()), second = PidOf(Said());
  while (Ready() != "ready") {
  }
  kill(supervisor_, SIGKILL);
  ExitCode();
  EXPECT_TRUE(EndsSoon(first));
  EXPECT_TRUE(EndsSoon(second));
}

TEST(SupervisorArguments, AreReadAsDocumented) {
  SupervisorOptions options;
  std::string error;
  ASSERT_TRUE(ParseSupervisorArguments(
      {"--ready-fd", "5", "--stop-ms", "70", "--child", "a", "/x", "--flag", "--child", "b", "/y"},
      options, error));
  EXPECT_EQ(options.ready_fd, 5);
  EXPECT_EQ(options.stop_ms, 70);
  ASSERT_EQ(options.programs.size(), 2u);
  EXPECT_EQ(options.programs[0].arguments, (std::vector<std::string>{"/x", "--flag"}));
  EXPECT_EQ(options.programs[1].name, "b");
}

TEST(SupervisorArguments, RefuseWhatIsWrong) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"--child"},
                                                       {"--child", "a"},
                                                       {"x"},
                                                       {"--ready-fd"},
                                                       {"--ready-fd", "x", "--child", "a", "/x"},
                                                       {"--no", "1", "--child", "a", "/x"}};
  for (const auto& words : wrong) {
    SupervisorOptions options;
    std::string error;
    EXPECT_FALSE(ParseSupervisorArguments(words, options, error));
    EXPECT_FALSE(error.empty());
  }
}

TEST(RestartDelay, DoublesWhileAProgramDiesYoungAndIsNoneOtherwise) {
  RestartDelay delay;
  EXPECT_EQ(delay.Next(RestartDelay::kYoungMs), 0);
  EXPECT_EQ(delay.Next(RestartDelay::kYoungMs - 1), 100);
  EXPECT_EQ(delay.Next(0), 200);
  for (int i = 0; i < 10; ++i) delay.Next(0);
  EXPECT_EQ(delay.Next(0), RestartDelay::kLongestRestartDelayMs);
  EXPECT_EQ(delay.Next(RestartDelay::kYoungMs), 0);
  EXPECT_EQ(delay.Next(0), 100);
}

}  // namespace
}  // namespace patchbay::workers
