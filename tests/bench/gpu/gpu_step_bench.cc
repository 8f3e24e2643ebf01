// A training loop on a GPU that its worker shares: a step on every batch of a stream in device
// slots, beside as many steps on one cached batch. The step is a kernel of fixed length
// (fixed_step.h), as long as the step that --step-ms-from names or STEP_MS. Prints one line of
// JSON.
//
// usage: patchbay-bench-gpu-step RUN.yaml STEPS STEP_MS [--gpus auto] [--step-ms-from FILE]
//   FILE has a line of JSON with "step_ms", of torch_figures.py; where there is none STEP_MS holds
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "ops/all_ops.h"
#include "runtime/client/open_run.h"
#include "runtime/core/strings.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "tests/bench/gpu/device_copy.h"
#include "tests/bench/gpu/fixed_step.h"

namespace patchbay::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Asked {
  std::string run, gpus = "auto", step_from;
  int steps = 0;
  double step_ms = 0;
};

double MsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// A trainer on the GPU: a stream, a cached batch, and the step.
struct Trainer {
  memory::OwnedGpuStream stream;
  memory::DeviceBlock d_cached, d_out;
  FixedStep step;

  Status Step(const std::byte* d_batch) {
    step.d_batch = d_batch;
    const int error = LaunchFixedStep(step, stream.get());
    return error == 0 ? absl::OkStatus()
                      : absl::InternalError(StrCat("fixed step: CUDA error ", error));
  }
  /// Milliseconds of a step on the cached batch, of `steps` in turn, each waited for.
  StatusOr<double> CachedMs(int steps) {
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) {
      PB_RETURN_IF_ERROR(Step(d_cached.d_data()));
      PB_RETURN_IF_ERROR(stream.WaitSync());
    }
    return MsSince(begin) / steps;
  }
};

/// Sets the step's rounds so that it takes `wanted_ms`.
Status Calibrate(Trainer& trainer, double wanted_ms) {
  trainer.step.rounds = 0;
  PB_RETURN_IF_ERROR(trainer.CachedMs(2).status());
  PB_ASSIGN_OR_RETURN(const double least_ms, trainer.CachedMs(3));
  constexpr std::int64_t kTrial = 1 << 14;
  trainer.step.rounds = kTrial;
  PB_ASSIGN_OR_RETURN(const double trial_ms, trainer.CachedMs(3));
  const double of_a_round = std::max((trial_ms - least_ms) / kTrial, 1e-9);
  trainer.step.rounds = static_cast<std::int64_t>(std::max(wanted_ms - least_ms, 0.0) / of_a_round);
  return absl::OkStatus();
}

StatusOr<Trainer> MakeTrainer(const client::BatchArray& image, unsigned blocks) {
  Trainer trainer;
  std::uint64_t bytes = SizeOf(image.tensor.dtype);
  for (int i = 0; i < image.tensor.rank; ++i)
    bytes *= static_cast<std::uint64_t>(image.tensor.shape[i]);
  PB_ASSIGN_OR_RETURN(trainer.stream, memory::OwnedGpuStream::Create());
  PB_ASSIGN_OR_RETURN(trainer.d_cached, memory::DeviceBlock::Allocate(bytes));
  PB_ASSIGN_OR_RETURN(trainer.d_out, memory::DeviceBlock::Allocate(FixedStepOutBytes(blocks)));
  trainer.step = {nullptr, bytes, trainer.d_out.d_data(), 0, blocks};
  PB_RETURN_IF_ERROR(memory::CopyOnDevice(trainer.d_cached.d_data(), image.tensor.data, bytes,
                                          trainer.stream.get()));
  PB_RETURN_IF_ERROR(trainer.stream.WaitSync());
  return trainer;
}

struct Loop {
  double ms = 0, wait_ms = 0;  ///< time of all steps; time in Next
};

/// Steps on the stream's batches. Each slot goes back by an event behind its step.
StatusOr<Loop> Streamed(client::Stream& stream, Trainer& trainer, int steps) {
  Loop loop;
  const auto begin = Clock::now();
  for (int i = 0; i < steps; ++i) {
    const auto asked = Clock::now();
    PB_ASSIGN_OR_RETURN(client::Batch batch, stream.Next(60'000));
    loop.wait_ms += MsSince(asked);
    PB_ASSIGN_OR_RETURN(const client::BatchArray image, batch.array("image"));
    PB_RETURN_IF_ERROR(trainer.Step(image.tensor.data));
    PB_RETURN_IF_ERROR(batch.ReleaseAfter(trainer.stream.get()));
    batch.Release();
    PB_RETURN_IF_ERROR(trainer.stream.WaitSync());
  }
  loop.ms = MsSince(begin);
  return loop;
}

/// Milliseconds a batch when the trainer does nothing with them.
StatusOr<double> CapacityMs(client::Stream& stream, int batches) {
  const auto begin = Clock::now();
  for (int i = 0; i < batches; ++i) PB_RETURN_IF_ERROR(stream.Next(60'000).status());
  return MsSince(begin) / batches;
}

/// "step_ms" of the line that has it; 0 without one.
double StepOfFile(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"step_ms\"") == std::string::npos) continue;
    const auto json = ParseJson(line, path);
    if (json.ok() && json->is_object() && json->value("step_ms", Json()).is_number()) {
      return json->at("step_ms").get<double>();
    }
  }
  return 0;
}

Status Measure(const Asked& asked) {
  client::RunOptions options;
  options.source.file = asked.run;
  options.cluster.environment = client::ReadEnvironment(environ, ops::Table());
  options.cluster.may_start = true;
  options.cluster.cpus = 1;
  options.cluster.gpus = asked.gpus;
  options.memory = client::SlotMemory::kDevice;
  PB_ASSIGN_OR_RETURN(const auto run, client::OpenRun(options));
  PB_RETURN_IF_ERROR(memory::SelectGpu(0));
  client::Stream& stream = *run->stream;
  PB_ASSIGN_OR_RETURN(client::Batch first, stream.Next(60'000));
  PB_ASSIGN_OR_RETURN(const client::BatchArray image, first.array("image"));
  PB_ASSIGN_OR_RETURN(Trainer trainer, MakeTrainer(image, asked.step_ms < 1 ? 1 : 0));
  first.Release();
  PB_ASSIGN_OR_RETURN(const double capacity_ms, CapacityMs(stream, asked.steps));
  const double measured_step = StepOfFile(asked.step_from);
  PB_RETURN_IF_ERROR(Calibrate(trainer, measured_step > 0 ? measured_step : asked.step_ms));
  PB_RETURN_IF_ERROR(Streamed(stream, trainer, 2).status());  // warms up
  PB_ASSIGN_OR_RETURN(const Loop loop, Streamed(stream, trainer, asked.steps));
  PB_ASSIGN_OR_RETURN(const double cached_ms, trainer.CachedMs(asked.steps));
  const double step_ms = loop.ms / asked.steps;
  std::printf("%s\n",
              DumpJson(Json{{"what", "step on a stream, fixed-time kernel"},
                            {"length_of", measured_step > 0 ? "torch's ResNet-50 step" : "STEP_MS"},
                            {"ms", step_ms},
                            {"bytes", trainer.step.batch_bytes},
                            {"cached_ms", cached_ms},
                            {"times_the_cached_step", step_ms / cached_ms},
                            {"gpu_busy_with_steps", std::min(cached_ms / step_ms, 1.0)},
                            {"stall", loop.wait_ms / loop.ms},
                            {"batch_ms_without_a_step", capacity_ms}})
                  .c_str());
  return absl::OkStatus();
}

bool Read(int argc, char** argv, Asked& asked) {
  if (argc < 4) return false;
  asked.run = argv[1];
  asked.steps = std::atoi(argv[2]);
  asked.step_ms = std::atof(argv[3]);
  for (int i = 4; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--gpus") {
      asked.gpus = argv[i + 1];
    } else if (flag == "--step-ms-from") {
      asked.step_from = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 0 && asked.steps > 0 && asked.steps <= 100'000 && asked.step_ms >= 0 &&
         asked.step_ms <= 10'000;
}

}  // namespace
}  // namespace patchbay::bench

int main(int argc, char** argv) {
  patchbay::bench::Asked asked;
  if (!patchbay::bench::Read(argc, argv, asked)) {
    std::fprintf(stderr,
                 "usage: patchbay-bench-gpu-step RUN.yaml STEPS STEP_MS (0 to 10000) [--gpus auto] "
                 "[--step-ms-from FILE]\n");
    return 2;
  }
  const patchbay::Status measured = patchbay::bench::Measure(asked);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "patchbay-bench-gpu-step: %s\n", patchbay::Describe(measured).c_str());
  return 1;
}
