// `patchbay`: the command line.
#include <string>
#include <vector>

#include "ops/all_ops.h"
#include "runtime/cli/command_table.h"
#include "runtime/client/environment.h"
#include "runtime/core/log.h"
#include "runtime/os/program_start.h"

int main(int argc, char** argv, char** variables) {
  patchbay::ExplainTermination();
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::InitLogging("patchbay", patchbay::LogSeverity::kWarning);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return patchbay::cli::RunCommandLine(
      words, patchbay::client::ReadEnvironment(variables, patchbay::ops::Table()));
}
