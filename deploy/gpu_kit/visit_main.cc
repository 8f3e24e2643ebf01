// ./visit of the archive that deploy/bundle --gpu-kit makes: every GPU test on this machine's GPU,
// then streams whose bytes must be those of the CPU, then the benchmarks; at most 8 minutes.
//   visit [--rehearse] [FOLDER]   FOLDER receives visit.json and what each program said; default:
//                                 report; --rehearse: benchmarks of a few small patches and some of
//                                 the tests, for a GPU that the CPU plays
// Static, so that it runs on any Linux. Exit code 0 when everything passed, 1 otherwise.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deploy/gpu_kit/run_step.h"

namespace patchbay::gpu_kit {
namespace {

constexpr double kVisitSeconds = 480;
constexpr char kLeftOut[] = "-";  ///< Step::rehearsed of what has no small form

enum class Shows { kTests, kDigest, kFigures, kNothing };

struct Step {
  const char* name = "";
  std::vector<std::string> words;  ///< the first is a program of bin/
  double limit_s = 0;
  Shows shows = Shows::kNothing;
  std::vector<std::string> rehearsed = {};  ///< instead of all words but the first; empty: the same
};

struct Outcome {
  std::string name, result, note;
  double seconds = 0;
  std::vector<std::string> figures;  ///< lines of JSON
};

const std::vector<Step>& Steps() {
  // Without those that start themselves again through a shell: the streams below have as many
  // processes on the GPU.
  static const std::string filter =
      "--gtest_filter=*OnGpu*-OnGpu.AnotherProcessWritesIntoAnExportedBlock:"
      "DeviceRingOnGpu.IsNotFreedWhileAWorkerHasItOpen:"
      "GpuPatchMakerOnGpu.CopiesOfOneLaneOverlapKernelsOfAnother";
  static const std::vector<Step> steps = {
      {"doctor", {"patchbay", "doctor"}, 20, Shows::kNothing},
      {"tests of memory", {"runtime_memory_test", filter}, 60, Shows::kTests},
      {"tests of ops",
       {"ops_test", filter},
       180,
       Shows::kTests,
       {"--gtest_filter=DeviceChainOnGpu.LabelsGoWhereThePixelsGo:SpectralOnGpu."
        "RefusesAsTheCpuDoes"}},
      {"tests of rings", {"runtime_data_test", filter}, 60, Shows::kTests},
      {"tests of a worker's lanes", {"workers_pipeline_test", filter}, 120, Shows::kTests},
      {"make a slide",
       {"patchbay", "synth", "slide", "a.svs", "--size", "3000x2000", "--force"},
       60,
       Shows::kNothing},
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
      {"spectra", {"patchbay-bench-spectra-gpu"}, 120, Shows::kNothing, {kLeftOut}},
  };
  return steps;
}

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

std::string RunConfig(const std::string& numerics) {
  return "dataset: stores\nnumerics: " + numerics +
         "\nseed: 3\npatch: {size: [256, 256], level: 0}\n"
         "batch: {global_size: 16, dtype: float16, tail: pad}\n"
         "augment: [flip, {affine: {p: 1, degrees: [-15, 15]}}, {hed_jitter: {p: 1}}, "
         "{gaussian_noise: {p: 1, std: [0.01, 0.02]}}]\n";
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

void Judge(const Step& step, const Finished& finished, std::string& digest, Outcome& outcome) {
  outcome.result = finished.exit_code == 0 ? "passed" : "failed";
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
  }
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= ' ') quoted += c;
  }
  return quoted + '"';
}

std::string JsonOf(const std::vector<Outcome>& outcomes) {
  std::string text = "{\"steps\": [";
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

std::vector<std::string> WordsOf(const Step& step, const std::string& root, bool rehearsal) {
  std::vector<std::string> words = step.words;
  words[0] = root + "/bin/" + words[0];
  if (rehearsal && !step.rehearsed.empty()) {
    words.resize(1);
    words.insert(words.end(), step.rehearsed.begin(), step.rehearsed.end());
  }
  return words;
}

std::vector<Outcome> RunAll(const std::string& root, const std::string& report, bool rehearsal) {
  std::vector<Outcome> outcomes;
  std::string digest;
  const double end = SecondsNow() + kVisitSeconds;
  for (std::size_t i = 0; i < Steps().size(); ++i) {
    const Step& step = Steps()[i];
    Outcome outcome{step.name, "not run", "the visit's time is over", 0, {}};
    const double left = end - SecondsNow();
    const std::vector<std::string> words = WordsOf(step, root, rehearsal);
    if (words.back() == kLeftOut) {
      outcome.result = "left out";
      outcome.note = "not a part of a rehearsal";
    } else if (left > 1) {
      const Finished finished = RunStep(words, report, report + "/" + LogName(i),
                                        left < step.limit_s ? left : step.limit_s);
      outcome.note.clear();
      outcome.seconds = finished.seconds;
      Judge(step, finished, digest, outcome);
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
  Write(report + "/cpu.yaml", RunConfig("cpu"));
  Write(report + "/cuda.yaml", RunConfig("cuda"));
  const std::vector<Outcome> outcomes = RunAll(root, report, rehearsal);
  Write(report + "/visit.json", JsonOf(outcomes));
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
