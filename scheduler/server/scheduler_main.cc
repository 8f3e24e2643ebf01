// patchbay-scheduler --state DIR --listen ADDRESS (--home DIR | --server-key FILE --keys DIR)
//                    [--allow-public] [--metrics [ADDR:]PORT] [--dashboard [ADDR:]PORT]
//                    [--tls FILE] [--metrics-token FILE] [--ready-fd N] [--verbose]
//
// Exit 0: stopped on purpose. 1: failed while running. 2: cannot start (flags, key, port, folder).
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

#include "runtime/core/log.h"
#include "runtime/os/program_start.h"
#include "runtime/wire/control/parent_pipe.h"
#include "scheduler/server/server.h"

namespace patchbay::scheduler {
namespace {

constexpr int kExitDone = 0, kExitFailed = 1, kExitCannotStart = 2;

struct CommandLine {
  ServerOptions server;
  int ready_fd = -1;
  bool verbose = false;
};

Status Usage(std::string_view cause) {
  return InvalidArgument(
      cause,
      "\nusage: patchbay-scheduler --state DIR --listen ADDRESS (--home DIR | --server-key FILE "
      "--keys DIR) [--allow-public] [--metrics [ADDR:]PORT] [--dashboard [ADDR:]PORT] "
      "[--tls FILE] [--metrics-token FILE] "
      "[--grace-ms N] [--ready-fd N] [--verbose]");
}

StatusOr<int> ParseNumber(std::string_view flag, std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return Usage(StrCat(flag, ": expected 0 or a larger number"));
  }
  return number;
}

StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& flag = arguments[i];
    if (flag == "--allow-public") {
      line.server.allow_public = true;
      continue;
    }
    if (flag == "--verbose") {
      line.verbose = true;
      continue;
    }
    if (i + 1 == arguments.size()) return Usage(StrCat(flag, ": unknown, or its value is missing"));
    const std::string& value = arguments[++i];
    if (flag == "--state") {
      line.server.state_folder = value;
    } else if (flag == "--listen") {
      line.server.address = value;
    } else if (flag == "--home") {
      line.server.server_key_file = StrCat(value, "/server.key");
      line.server.keys_folder = StrCat(value, "/keys");
    } else if (flag == "--server-key") {
      line.server.server_key_file = value;
    } else if (flag == "--keys") {
      line.server.keys_folder = value;
    } else if (flag == "--metrics") {
      line.server.metrics = value;
    } else if (flag == "--dashboard") {
      line.server.dashboard = value;
    } else if (flag == "--tls") {
      line.server.tls = value;
    } else if (flag == "--metrics-token") {
      line.server.metrics_token = value;
    } else if (flag == "--ready-fd") {
      PB_ASSIGN_OR_RETURN(line.ready_fd, ParseNumber(flag, value));
    } else if (flag == "--grace-ms") {
      PB_ASSIGN_OR_RETURN(line.server.grace_ms, ParseNumber(flag, value));
    } else {
      return Usage(StrCat(flag, ": unknown"));
    }
  }
  if (line.server.state_folder.empty()) return Usage("--state is missing");
  if (line.server.address.empty()) return Usage("--listen is missing");
  if (line.server.server_key_file.empty() || line.server.keys_folder.empty()) {
    return Usage("--home, or --server-key and --keys, is missing");
  }
  return line;
}

/// Every connection needs a descriptor: raises the limit to the system's maximum.
void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int CannotStart(const Status& why) {
  std::fprintf(stderr, "patchbay-scheduler: %s\n", std::string(MessageOf(why)).c_str());
  return kExitCannotStart;
}

int Run(const CommandLine& line) {
  InitLogging("scheduler", line.verbose ? LogSeverity::kDebug : LogSeverity::kInfo);
  RaiseDescriptorLimit();
  signal(SIGPIPE, SIG_IGN);
  auto loop = control::EventLoop::Open();
  if (!loop.ok()) return CannotStart(loop.status());
  Server* running = nullptr;
  const auto watch = (*loop)->WatchSignals({SIGTERM, SIGINT, SIGUSR1}, [&](int number, pid_t) {
    const bool comes = number == SIGUSR1;
    LogInfo(comes ? "a stop comes once the agent has drained" : "stopping on a signal");
    if (running != nullptr) comes ? running->AnnounceStop() : running->Stop();
  });
  if (!watch.ok()) return CannotStart(watch.status());
  auto server = Server::Open(**loop, line.server);
  if (!server.ok()) return CannotStart(server.status());
  running = server->get();
  LogInfo(StrCat("listening on ", running->address()));
  std::optional<control::ParentPipe> parent(std::in_place, **loop, line.ready_fd);
  parent->ReportReady(running->address());
  (*loop)->Run();
  parent.reset();  // the rest of the stop may take as long as the disk does
  const Status outcome = running->outcome();
  server->reset();
  LogInfo("stopped");
  return outcome.ok() ? kExitDone : kExitFailed;
}

}  // namespace
}  // namespace patchbay::scheduler

int main(int argc, char** argv) {
  patchbay::ExplainTermination();
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfSchedulers);
  const auto line =
      patchbay::scheduler::ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return patchbay::scheduler::CannotStart(line.status());
  return patchbay::scheduler::Run(*line);
}
