#include "deploy/gpu_kit/visit_steps.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace patchbay::gpu_kit {
namespace {

constexpr long kOutputBytesMax = 1 << 20;
constexpr timespec kBetweenLooks{0, 10'000'000};

[[noreturn]] void Become(const std::vector<std::string>& words, const std::string& folder,
                         const std::string& log) {
  setpgid(0, 0);  // what it starts is killed with it
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

}  // namespace

double SecondsNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

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

std::vector<RunFile> RunFiles() {
  return {
      {"cpu.yaml", RunConfig("cpu")}, {"cuda.yaml", RunConfig("cuda")}, {"step.yaml", kStepConfig}};
}

}  // namespace patchbay::gpu_kit
