// One program of the kit, run with a limit; what it said is kept in a file.
#pragma once

#include <string>
#include <vector>

namespace patchbay::gpu_kit {

struct Finished {
  int exit_code = -1;  ///< -1: it was killed at the limit, or by a signal
  double seconds = 0;
  std::string output;  ///< the end of what it said: stdout, then stderr's lines among it
};

/// Runs `words` in `folder` for at most `limit_s` seconds, its output in `log`. A process that
/// cannot be started has exit code 127.
Finished RunStep(const std::vector<std::string>& words, const std::string& folder,
                 const std::string& log, double limit_s);

double SecondsNow();

}  // namespace patchbay::gpu_kit
