// patchbay-supervisor [--ready-fd N] [--stop-ms N] --child NAME PROGRAM ARGUMENT... [--child ...]
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <stdlib.h>

#include "runtime/os/program_start.h"
#include "workers/agent/supervisor.h"

int main(int argc, char** argv, char** variables) {
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfSupervisors);
  patchbay::workers::SupervisorOptions options;
  std::string error;
  if (!patchbay::workers::ParseSupervisorArguments({argv + 1, argv + argc}, options, error)) {
    std::fprintf(stderr, "patchbay-supervisor: %s\n", error.c_str());
    return patchbay::workers::kExitCannotStart;
  }
  constexpr std::string_view kNotify = "NOTIFY_SOCKET=";
  for (char** entry = variables; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with(kNotify)) options.notify = *entry + kNotify.size();
  }
  unsetenv("NOTIFY_SOCKET");  // no other program speaks for the service
  if (options.ready_fd >= 0) fcntl(options.ready_fd, F_SETFD, FD_CLOEXEC);
  return patchbay::workers::RunSupervisor(options);
}
