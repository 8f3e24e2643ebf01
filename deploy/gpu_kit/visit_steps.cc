#include "deploy/gpu_kit/visit_steps.h"

namespace patchbay::gpu_kit {
namespace {

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
