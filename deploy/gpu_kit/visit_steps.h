// The steps of a visit, in order.
#pragma once

#include <string>
#include <vector>

namespace patchbay::gpu_kit {

struct Finished {
  int exit_code = -1;  ///< -1: it was killed at the limit, or by a signal
  double seconds = 0;
  std::string output;  ///< the end of its output, stdout and stderr mixed
};

/// Runs `words` in `folder` for at most `limit_s` seconds, its output in `log`. A process that
/// cannot be started has exit code 127.
Finished RunStep(const std::vector<std::string>& words, const std::string& folder,
                 const std::string& log, double limit_s);

double SecondsNow();

constexpr char kLeftOut[] = "-";       ///< Step::rehearsed of what has no small form
constexpr char kPython[] = "python3";  ///< instead of a program of bin/: the machine's own
constexpr char kTorchLog[] =
    "TORCH_FIGURES";  ///< stands for the file with what the last kPython's step before it said

enum class Shows {
  kTests,    ///< GoogleTest's closing lines
  kDigest,   ///< 64 hexadecimal digits, the same from every such step
  kFigures,  ///< a line of JSON a figure
  kMachine,  ///< of `patchbay doctor`; without a GPU nothing else is run
  kSpectra,  ///< the JSON of `patchbay spectra`
  kNothing
};

struct Step {
  const char* name = "";
  std::vector<std::string> words;  ///< the first is a program of bin/, or kPython
  double limit_s = 0;
  Shows shows = Shows::kNothing;
  std::vector<std::string> rehearsed = {};  ///< instead of all words but the first; empty: the same
};

const std::vector<Step>& Steps();

struct RunFile {
  const char* name = "";
  std::string text;
};

/// Run configs that the steps name; they lie in the report's folder.
std::vector<RunFile> RunFiles();

}  // namespace patchbay::gpu_kit
