// `patchbay`: the command line.
#include <string>
#include <vector>

#include "runtime/base/file_limit.h"
#include "runtime/base/last_words.h"
#include "runtime/base/log.h"
#include "runtime/base/standard_streams.h"
#include "runtime/cli/command_table.h"
#include "runtime/client/environment.h"

int main(int argc, char** argv, char** variables) {
  patchbay::ExplainTermination();
  patchbay::OpenClosedStandardStreams();
  patchbay::ReportFileLimitAsError();
  patchbay::InitLogging("patchbay", patchbay::LogSeverity::kWarning);
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return patchbay::cli::RunCommandLine(words, patchbay::client::ReadEnvironment(variables));
}
