// patchbay-supervisor [--ready-fd N] [--stop-ms N] --child NAME PROGRAM ARGUMENT... [--child ...]
#include <cstdio>

#include <fcntl.h>

#include "runtime/os/program_start.h"
#include "workers/agent/supervisor.h"

int main(int argc, char** argv) {
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfSupervisors);
  patchbay::workers::SupervisorOptions options;
  std::string error;
  if (!patchbay::workers::ParseSupervisorArguments({argv + 1, argv + argc}, options, error)) {
    std::fprintf(stderr, "patchbay-supervisor: %s\n", error.c_str());
    return patchbay::workers::kExitCannotStart;
  }
  if (options.ready_fd >= 0) fcntl(options.ready_fd, F_SETFD, FD_CLOEXEC);
  return patchbay::workers::RunSupervisor(options);
}
