// patchbay-launcher --owner PID --link N --folder DIR [...] -- SUPERVISOR...
#include <cstdio>

#include <stdlib.h>

#include "runtime/os/program_start.h"
#include "workers/agent/launcher.h"
#include "workers/process/child_process.h"

int main(int argc, char** argv) {
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::RaiseOomScore(patchbay::kOomScoreOfSupervisors);
  unsetenv("NOTIFY_SOCKET");  // a service that starts a cluster of its own is not that cluster
  patchbay::workers::LauncherOptions options;
  std::string error;
  if (!patchbay::workers::ParseLauncherArguments({argv + 1, argv + argc}, options, error)) {
    std::fprintf(stderr, "patchbay-launcher: %s\n", error.c_str());
    return patchbay::workers::kExitCannotStart;
  }
  return patchbay::workers::RunLauncher(options);
}
