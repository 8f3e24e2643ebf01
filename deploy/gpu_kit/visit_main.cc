// ./visit of the archive that deploy/bundle --gpu-kit makes: every GPU test on this machine's GPU,
// then streams whose bytes must be those of the CPU, then the benchmarks, those of torch and Kornia
// where the machine's python3 has torch; at most 8 minutes.
//   visit [--rehearse] [FOLDER]   FOLDER receives visit.json and what each program said; default:
//                                 report; --rehearse: benchmarks of a few small patches and some of
//                                 the tests, for a GPU that the CPU plays
// Static, so that it runs on any Linux. Exit code 0 when everything passed, 1 otherwise.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::gpu_kit {
namespace {

struct Finished {
  int exit_code = -1;  ///< -1: it was killed at the limit, or by a signal
  double seconds = 0;
  std::string output;  ///< the end of its output, stdout and stderr mixed
};

constexpr char kLeftOut[] = "-";       ///< Step::rehearsed of what has no small form
constexpr char kPython[] = "python3";  ///< instead of a program of bin/: the machine's own
constexpr char kTorchLog[] =
    "TORCH_FIGURES";  ///< stands for the file with what the last kPython's step before it said

enum class Shows {
  kTests,    ///< GoogleTest's closing lines
  kDigest,   ///< 64 hexadecimal digits, the same from every such step
  kFigures,  ///< a line of JSON a figure
  kMachine,  ///< report of `patchbay doctor`; without a GPU nothing else is run
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

struct RunFile {
  const char* name = "";
  std::string text;
};

constexpr long kOutputBytesMax = 1 << 20;
constexpr timespec kBetweenLooks{0, 10'000'000};

[[noreturn]] void Become(const std::vector<std::string>& words, const std::string& folder,
                         const std::string& log) {
  setpgid(0, 0);  // processes that it starts are killed with it
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int nothing = open("/dev/null", O_RDONLY);
  if (out < 0 || chdir(folder.c_str()) != 0) _exit(127);
  if (nothing >= 0) dup2(nothing, 0);
  dup2(out, 1);
  dup2(out, 2);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  std::fprintf(stderr, "start %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

std::string EndOf(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return text;
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::fseek(file, size > kOutputBytesMax ? size - kOutputBytesMax : 0, SEEK_SET);
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    text.append(buffer, got);
  }
  std::fclose(file);
  return text;
}

std::string RunConfig(const std::string& numerics) {
  return "dataset: stores\nnumerics: " + numerics +
         "\nseed: 3\npatch: {size: [256, 256], level: 0}\n"
         "batch: {global_size: 16, dtype: float16, tail: pad}\n"
         "augment: [flip, {affine: {p: 1, degrees: [-15, 15]}}, {hed_jitter: {p: 1}}, "
         "{gaussian_noise: {p: 1, std: [0.01, 0.02]}}]\n";
}

constexpr char kStepConfig[] =
    "dataset: stores\nnumerics: cuda\nseed: 3\npatch: {size: [512, 512], level: 0}\n"
    "batch: {global_size: 32, dtype: float16, prefetch: 2, tail: drop}\n"
    "augment: [flip, {affine: {p: 1, degrees: [-15, 15], scale: [0.9, 1.1]}}, "
    "{hed_jitter: {p: 1}}]\n";

/// All on a GPU but those that start themselves again through a shell: the streams among the steps
/// have as many processes on the GPU.
const char kFilter[] =
    "--gtest_filter=*OnGpu*-OnGpu.AnotherProcessWritesIntoAnExportedBlock:"
    "OnGpu.AKilledProcessIsListedForAWhileAndThenHasLeft:"
    "DeviceRingOnGpu.IsNotFreedWhileAWorkerHasItOpen:"
    "GpuPatchMakerOnGpu.CopiesOfOneLaneOverlapKernelsOfAnother:"
    "GpuVolumesOnGpu.ALaneThatHasSeenItsLargestBoxAllocatesNothing";

double SecondsNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Runs `words` in `folder` for at most `limit_s` seconds, its output in `log`. A process that
/// cannot be started has exit code 127.
Finished RunStep(const std::vector<std::string>& words, const std::string& folder,
                 const std::string& log, double limit_s) {
  Finished finished;
  const double begin = SecondsNow();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) Become(words, folder, log);
  int status = 0;
  bool ended = pid < 0;
  while (!ended && SecondsNow() - begin < limit_s) {
    ended = waitpid(pid, &status, WNOHANG) == pid;
    if (!ended) nanosleep(&kBetweenLooks, nullptr);
  }
  if (pid > 0) kill(-pid, SIGKILL);
  if (!ended) waitpid(pid, &status, 0);
  finished.seconds = SecondsNow() - begin;
  if (pid > 0 && ended && WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  finished.output = EndOf(log);
  return finished;
}

const std::vector<Step>& Steps() {
  static const std::vector<Step> steps = {
      {"doctor", {"patchbay", "doctor"}, 20, Shows::kMachine},
      {"tests of memory", {"runtime_memory_test", kFilter}, 60, Shows::kTests},
      {"tests of ops",
       {"ops_test", kFilter},
       180,
       Shows::kTests,
       {"--gtest_filter=DeviceChainOnGpu.LabelsGoWhereThePixelsGo:SpectralOnGpu."
        "RefusesAsTheCpuDoes"}},
      {"tests of rings", {"runtime_data_test", kFilter}, 60, Shows::kTests},
      {"tests of a worker's lanes", {"workers_pipeline_test", kFilter}, 120, Shows::kTests},
      {"make a slide",
       {"patchbay", "synth", "slide", "a.svs", "--size", "12000x10000", "--force"},
       60,
       Shows::kNothing,
       {"synth", "slide", "a.svs", "--size", "3000x2000", "--force"}},
      {"ingest", {"patchbay", "ingest", "a.svs", "--out", "stores"}, 90, Shows::kNothing},
      {"stream: CPU workers, host slots",
       {"patchbay-test-gpu-trainer", "cpu.yaml", "6", "none", "host"},
       60,
       Shows::kDigest},
      {"stream: CPU workers, device slots",
       {"patchbay-test-gpu-trainer", "cpu.yaml", "6", "none", "0"},
       60,
       Shows::kDigest},
      {"stream: GPU worker, host slots",
       {"patchbay-test-gpu-trainer", "cuda.yaml", "6", "auto", "host"},
       60,
       Shows::kDigest},
      {"stream: GPU worker, device slots",
       {"patchbay-test-gpu-trainer", "cuda.yaml", "6", "auto", "0"},
       60,
       Shows::kDigest},
      {"chain and copies", {"patchbay-bench-gpu"}, 120, Shows::kFigures, {"2", "128"}},
      {"spectra: kernels, and from host memory",
       {"patchbay-bench-spectra-gpu"},
       60,
       Shows::kFigures,
       {kLeftOut}},
      {"read and decode of that store alone",
       {"patchbay-bench-read", "stores"},
       60,
       Shows::kFigures},
      {"spectra of a store, GPU worker",
       {"patchbay", "spectra", "stores", "--out", "spectra", "--numerics", "cuda", "--gpus", "auto",
        "--json"},
       60,
       Shows::kSpectra},
      {"torch and Kornia", {kPython, "torch_figures.py"}, 150, Shows::kFigures, {kLeftOut}},
      {"a worker and a trainer on one GPU",
       {"patchbay-bench-gpu-step", "step.yaml", "200", "20", "--step-ms-from", kTorchLog},
       60,
       Shows::kFigures,
       {"cuda.yaml", "2", "0"}},
      {"a worker and torch's training on one GPU",
       {kPython, "torch_stream.py", "step.yaml"},
       90,
       Shows::kFigures,
       {kLeftOut}},
  };
  return steps;
}

/// Run configs that the steps name; they lie in the report's folder.
std::vector<RunFile> RunFiles() {
  return {
      {"cpu.yaml", RunConfig("cpu")}, {"cuda.yaml", RunConfig("cuda")}, {"step.yaml", kStepConfig}};
}

constexpr double kVisitSeconds = 480;
constexpr int kNothingToMeasureWith = 3;  ///< exit code of kPython's steps without torch or a GPU
struct Outcome {
  std::string name, result, note;
  double seconds = 0;
  std::vector<std::string> figures;  ///< lines of JSON
};

[[noreturn]] void End(const std::string& why) {
  std::fprintf(stderr, "visit: %s\n", why.c_str());
  std::exit(2);
}

void Write(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file == nullptr || std::fclose(file) != 0 || !written) {
    End("write " + path + ": " + std::strerror(errno));
  }
}

/// The text of a small file; empty without one.
std::string Read(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
    char buffer[4096];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
      text.append(buffer, got);
    }
    std::fclose(file);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// The number before " test" on the line that begins with `mark`; 0 without one.
int CountAfter(const std::string& text, const char* mark) {
  const std::size_t at = text.rfind(mark);
  return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + std::strlen(mark));
}

std::vector<std::string> LinesOf(const std::string& text, std::string_view begins_with) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with(begins_with)) lines.push_back(line);
    at = end + 1;
  }
  return lines;
}

/// The number that follows `mark`, as it stands there; empty without one.
std::string NumberAfter(const std::string& text, const char* mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + std::strlen(mark);
  return text.substr(begin, text.find_first_not_of("0123456789.eE+-", begin) - begin);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= ' ') quoted += c;
  }
  return quoted + '"';
}

void Judge(const Step& step, const Finished& finished, std::string& digest, Outcome& outcome) {
  outcome.result = finished.exit_code == 0 ? "passed" : "failed";
  if (step.words[0] == kPython && finished.exit_code == kNothingToMeasureWith) {
    outcome.result = "left out";
    outcome.note = finished.output.substr(0, finished.output.find('\n'));
    return;
  }
  if (finished.exit_code < 0) outcome.note = "killed, or at its limit";
  if (step.shows == Shows::kTests) {
    const int passed = CountAfter(finished.output, "[  PASSED  ] ");
    const int skipped = CountAfter(finished.output, "[  SKIPPED ] ");
    outcome.note = std::to_string(passed) + " passed, " +
                   std::to_string(CountAfter(finished.output, "[  FAILED  ] ")) + " failed, " +
                   std::to_string(skipped) + " skipped";
    if (passed == 0) outcome.result = "failed";
  } else if (step.shows == Shows::kDigest && finished.exit_code == 0) {
    outcome.note = finished.output.substr(0, 64);
    if (digest.empty()) digest = outcome.note;
    if (outcome.note.size() != 64 || outcome.note != digest) outcome.result = "failed";
  } else if (step.shows == Shows::kFigures) {
    outcome.figures = LinesOf(finished.output, "{");
    if (outcome.figures.empty()) outcome.result = "failed";
  } else if (step.shows == Shows::kMachine) {
    const std::vector<std::string> lacks = LinesOf(finished.output, "lacks  gpu ");
    if (!lacks.empty()) {
      outcome.result = "failed";
      outcome.note = lacks[0].substr(lacks[0].find_first_not_of(' ', std::strlen("lacks  gpu ")));
    }
  } else if (step.shows == Shows::kSpectra && finished.exit_code == 0) {
    const std::string seconds = NumberAfter(finished.output, "\"seconds\":");
    const std::string bytes = NumberAfter(finished.output, "\"pixel_bytes\":");
    outcome.figures = {"{\"what\": " + Quoted(step.name) +
                       ", \"ms\": " + std::to_string(std::atof(seconds.c_str()) * 1e3) +
                       ", \"bytes\": " + bytes + "}"};
    if (seconds.empty() || bytes.empty()) outcome.result = "failed";
  }
}

/// `kernels`: JSON of each kernel's resources; empty if the kernels are not CUDA's.
std::string JsonOf(const std::vector<Outcome>& outcomes, const std::string& kernels) {
  std::string text =
      "{\"device_code\": " + (kernels.empty() ? "null" : kernels) + ",\n\"steps\": [";
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    text += std::string(i == 0 ? "" : ",") + "\n {\"name\": " + Quoted(outcome.name) +
            ", \"result\": " + Quoted(outcome.result) + ", \"note\": " + Quoted(outcome.note) +
            ", \"seconds\": " + std::to_string(outcome.seconds) + ", \"figures\": [";
    for (std::size_t k = 0; k < outcome.figures.size(); ++k) {
      text += (k == 0 ? "\n  " : ",\n  ") + outcome.figures[k];
    }
    text += "]}";
  }
  return text + "\n]}\n";
}

std::string LogName(std::size_t index) {
  return std::string(index < 9 ? "0" : "") + std::to_string(index + 1) + ".log";
}

/// The first program of that name on the PATH; empty without one.
std::string OnPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (std::size_t at = 0; at < folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string file = folders.substr(at, end - at) + "/" + name;
    if (file[0] == '/' && access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return "";
}

/// The command line of a step; empty: `outcome` has the reason why it is not run.
std::vector<std::string> WordsOf(const Step& step, const std::string& root, bool rehearsal,
                                 Outcome& outcome) {
  std::vector<std::string> words = step.words;
  if (rehearsal && !step.rehearsed.empty()) {
    words.resize(1);
    words.insert(words.end(), step.rehearsed.begin(), step.rehearsed.end());
  }
  outcome.result = "left out";
  outcome.note = "not a part of a rehearsal";
  if (words.back() == kLeftOut) return {};
  if (words[0] != kPython) {
    words[0] = root + "/bin/" + words[0];
    return words;
  }
  outcome.note = "no python3 on this machine";
  words[0] = OnPath(kPython);
  if (words[0].empty()) return {};
  words[1] = root + "/python/" + words[1];
  return words;
}

std::vector<Outcome> RunAll(const std::string& root, const std::string& report, bool rehearsal) {
  std::vector<Outcome> outcomes;
  std::string digest;
  std::vector<std::string> logs;
  std::size_t torch_log = 0;
  bool has_gpu = true;
  const double end = SecondsNow() + kVisitSeconds;
  for (std::size_t i = 0; i < Steps().size(); ++i) {
    const Step& step = Steps()[i];
    Outcome outcome{step.name, "", "", 0, {}};
    const double left = end - SecondsNow();
    std::vector<std::string> words = WordsOf(step, root, rehearsal, outcome);
    std::string& log = logs.emplace_back(LogName(i));
    for (std::string& word : words) {
      if (word == kTorchLog) word = logs[torch_log];
    }
    if (step.words[0] == kPython) torch_log = i;
    if (!words.empty() && (left <= 1 || !has_gpu)) {
      outcome.result = "not run";
      outcome.note = has_gpu ? "the visit's time is over" : "there is no GPU to run it on";
    } else if (!words.empty()) {
      const Finished finished =
          RunStep(words, report, report + "/" + log, left < step.limit_s ? left : step.limit_s);
      outcome.note.clear();
      outcome.seconds = finished.seconds;
      Judge(step, finished, digest, outcome);
      if (step.shows == Shows::kMachine) has_gpu = outcome.result == "passed";
    }
    std::printf("%-9s %-36s %6.1f s  %s\n", outcome.result.c_str(), step.name, outcome.seconds,
                outcome.note.c_str());
    for (const std::string& line : outcome.figures) std::printf("          %s\n", line.c_str());
    std::fflush(stdout);
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

int Main(int argc, char** argv) {
  char place[PATH_MAX] = "", absolute[PATH_MAX] = "";
  const bool rehearsal = argc > 1 && std::string_view(argv[1]) == "--rehearse";
  if (rehearsal) --argc, ++argv;
  if (argc > 2 || (argc > 1 && argv[1][0] == '-')) End("usage: visit [--rehearse] [FOLDER]");
  if (readlink("/proc/self/exe", place, sizeof(place) - 1) < 0) End("no /proc is mounted");
  const std::string root(place, std::strrchr(place, '/'));
  const std::string wanted = argc > 1 ? argv[1] : "report";
  if (mkdir(wanted.c_str(), 0755) != 0 && errno != EEXIST) {
    End("make " + wanted + ": " + std::strerror(errno));
  }
  if (realpath(wanted.c_str(), absolute) == nullptr) End(wanted + ": " + std::strerror(errno));
  const std::string report = absolute;
  setenv("PATCHBAY_HOME", (report + "/home").c_str(), 1);
  setenv("PYTHONPATH", (root + "/python").c_str(), 1);
  setenv("PATCHBAY_BIN", (root + "/bin").c_str(), 1);  // the module's programs
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  for (const RunFile& file : RunFiles()) Write(report + "/" + file.name, file.text);
  const std::vector<Outcome> outcomes = RunAll(root, report, rehearsal);
  Write(report + "/visit.json", JsonOf(outcomes, Read(root + "/kernels.json")));
  int failed = 0;
  for (const Outcome& outcome : outcomes)
    failed += outcome.result == "failed" || outcome.result == "not run" ? 1 : 0;
  std::printf("%zu steps, %d not passed; %s/visit.json has the figures, *.log what was said\n",
              outcomes.size(), failed, report.c_str());
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace patchbay::gpu_kit

int main(int argc, char** argv) { return patchbay::gpu_kit::Main(argc, argv); }
