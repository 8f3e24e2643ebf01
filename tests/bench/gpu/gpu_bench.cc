// Chains on a GPU beside the copy of as many bytes, of slides and of volumes; copies between host
// and device, and writes into a block of another process: one line of JSON a figure, of the median
// of rounds. No data is needed.
//
// usage: patchbay-bench-gpu [PATCHES [SIDE]]    (256 patches of 512 x 512)
// Volumes: a quarter of the patches, at most 64, of 3/16 of the side, 24 to 96.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ops/chain/device_chain.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "tests/bench/gpu/device_copy.h"
#include "tests/bench/gpu/figure.h"
#include "tests/bench/gpu/median_seconds.h"
#include "tests/bench/gpu/other_process.h"
#include "tests/bench/gpu/volume_cases.h"

namespace patchbay::ops {
namespace {

constexpr char kLight[] = R"([{"flip": {}}, {"rotate90": {}},
  {"normalize": {"mean": [0.7, 0.55, 0.7], "std": [0.2, 0.2, 0.2]}}])";
constexpr char kFull[] = R"([{"affine": {"p": 1, "degrees": [-15, 15], "scale": [0.9, 1.1]}},
  {"stain_normalize": {}}, {"hed_jitter": {"p": 1}},
  {"normalize": {"mean": [0.7, 0.55, 0.7], "std": [0.2, 0.2, 0.2]}}])";
constexpr char kElasticNoise[] = R"([{"affine": {"p": 1, "degrees": [-15, 15]}},
  {"elastic": {"p": 1, "points": 8, "amplitude": 10}}, {"stain_normalize": {}},
  {"hed_jitter": {"p": 1}}, {"gaussian_noise": {"p": 1, "std": [0.01, 0.02]}},
  {"normalize": {"mean": [0.7, 0.55, 0.7], "std": [0.2, 0.2, 0.2]}}])";
constexpr char kBlurContrast[] = R"([{"color_jitter": {"p": 1, "contrast": [0.8, 1.2]}},
  {"gaussian_blur": {"p": 1, "sigma": [1, 1]}},
  {"normalize": {"mean": [0.7, 0.55, 0.7], "std": [0.2, 0.2, 0.2]}}])";

/// Device memory of one batch: sources and finished patches.
struct Batch {
  std::int64_t patches = 0, side = 0;
  memory::OwnedGpuStream stream;
  memory::DeviceBlock d_sources, d_patches;

  std::uint64_t SourceBytes() const { return static_cast<std::uint64_t>(side * side * 3); }
  std::uint64_t PatchBytes() const { return 2 * SourceBytes(); }
};

StatusOr<Batch> MakeBatch(std::int64_t patches, std::int64_t side) {
  Batch batch{patches, side, {}, {}, {}};
  const auto count = static_cast<std::uint64_t>(patches);
  PB_ASSIGN_OR_RETURN(batch.stream, memory::OwnedGpuStream::Create());
  PB_ASSIGN_OR_RETURN(batch.d_sources, memory::DeviceBlock::Allocate(count * batch.SourceBytes()));
  PB_ASSIGN_OR_RETURN(batch.d_patches, memory::DeviceBlock::Allocate(count * batch.PatchBytes()));
  std::vector<std::byte> source(batch.SourceBytes());
  std::uint32_t state = 1;
  for (std::byte& value : source) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<std::byte>(state >> 24);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    PB_RETURN_IF_ERROR(memory::CopyToDevice(batch.d_sources.d_data() + i * batch.SourceBytes(),
                                            source, batch.stream.get()));
  }
  PB_RETURN_IF_ERROR(batch.stream.WaitSync());
  return batch;
}

/// One batch through a chain, beside a copy that reads and writes as many bytes in all.
Status MeasureChain(std::string_view name, const char* list, Batch& batch, double copy_seconds) {
  ChainOptions options;
  options.patch.y = options.patch.x = batch.side;
  options.dtype = DType::kFloat16;
  options.augment = *ParseJson(list, "ops");
  PB_ASSIGN_OR_RETURN(const Chain chain, Chain::Compile(options));
  PB_ASSIGN_OR_RETURN(const DeviceChain device, DeviceChain::Create(chain, batch.stream.get()));
  const plan::MacenkoFit fit = plan::DefaultMacenko();
  std::vector<DevicePatch> patches;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(batch.patches); ++i) {
    patches.push_back({batch.d_sources.d_data() + i * batch.SourceBytes(),
                       batch.d_patches.d_data() + i * batch.PatchBytes(),
                       {1, 0, i, 0, DrawStream::kParameters},
                       &fit});
  }
  DeviceArena room;
  PB_ASSIGN_OR_RETURN(const double seconds,
                      bench::MedianSeconds(batch.stream, [&](memory::GpuStream stream) -> Status {
                        PB_RETURN_IF_ERROR(batch.stream.WaitSync());  // the room is one batch's
                        PB_RETURN_IF_ERROR(device.Begin(room, patches.size()));
                        return device.Launch(patches, room, stream);
                      }));
  const std::uint64_t kernels = room.kernels();
  PB_RETURN_IF_ERROR(device.Begin(room, patches.size()));
  PB_RETURN_IF_ERROR(device.Launch(patches, room, batch.stream.get()));
  PB_RETURN_IF_ERROR(batch.stream.WaitSync());
  bench::PrintFigure(name, seconds, batch.d_sources.size_bytes() + batch.d_patches.size_bytes(),
                     seconds / copy_seconds, room.kernels() - kernels);
  return absl::OkStatus();
}

Status MeasureCopies(Batch& batch) {
  PB_ASSIGN_OR_RETURN(auto pinned, memory::PinnedBuffer::Allocate(batch.d_sources.size_bytes()));
  const std::uint64_t bytes = batch.d_sources.size_bytes();
  PB_ASSIGN_OR_RETURN(
      const double up, bench::MedianSeconds(batch.stream, [&](memory::GpuStream stream) {
        return memory::CopyToDevice(batch.d_sources.d_data(), pinned.bytes(), stream);
      }));
  bench::PrintFigure("host to device, pinned", up, bytes, 0);
  PB_ASSIGN_OR_RETURN(const double down,
                      bench::MedianSeconds(batch.stream, [&](memory::GpuStream stream) {
                        return memory::CopyToHost(pinned.bytes(), batch.d_sources.d_data(), stream);
                      }));
  bench::PrintFigure("device to host, pinned", down, bytes, 0);
  return absl::OkStatus();
}

/// Another process copies into a block of this one, beside the same copy within one process.
Status MeasureShared(Batch& batch, bench::OtherProcess& other) {
  const std::uint64_t bytes = batch.d_sources.size_bytes();
  PB_ASSIGN_OR_RETURN(const auto d_slot, memory::DeviceBlock::Allocate(bytes));
  PB_ASSIGN_OR_RETURN(
      const double own, bench::MedianSeconds(batch.stream, [&](memory::GpuStream stream) {
        return memory::CopyOnDevice(d_slot.d_data(), batch.d_sources.d_data(), bytes, stream);
      }));
  PB_ASSIGN_OR_RETURN(const double shared, other.SecondsOfAWrite(d_slot));
  bench::PrintFigure("copy into a slot, one process", own, 2 * bytes, 1);
  bench::PrintFigure("copy into another process's slot (IPC)", shared, 2 * bytes, shared / own);
  return absl::OkStatus();
}

Status Measure(std::int64_t count, std::int64_t side, bench::OtherProcess& other) {
  PB_RETURN_IF_ERROR(memory::SelectGpu(0));
  PB_ASSIGN_OR_RETURN(Batch batch, MakeBatch(count, side));
  // A chain reads one byte and writes two: a copy of 1.5 moves as many.
  const std::uint64_t half = batch.d_sources.size_bytes() + batch.d_sources.size_bytes() / 2;
  PB_ASSIGN_OR_RETURN(auto d_from, memory::DeviceBlock::Allocate(half));
  PB_RETURN_IF_ERROR(memory::FillDevice(d_from.d_data(), 1, half, batch.stream.get()));
  PB_ASSIGN_OR_RETURN(
      const double copy, bench::MedianSeconds(batch.stream, [&](memory::GpuStream stream) {
        return memory::CopyOnDevice(batch.d_patches.d_data(), d_from.d_data(), half, stream);
      }));
  bench::PrintFigure("copy on the device (floor)", copy, 2 * half, 1);
  PB_RETURN_IF_ERROR(MeasureChain("chain, light", kLight, batch, copy));
  PB_RETURN_IF_ERROR(MeasureChain("chain, full", kFull, batch, copy));
  PB_RETURN_IF_ERROR(
      MeasureChain("chain, full with elastic and noise", kElasticNoise, batch, copy));
  PB_RETURN_IF_ERROR(MeasureChain("chain, contrast and blur", kBlurContrast, batch, copy));
  // By default 64 volumes of 96 x 96 x 96 (the patches are 256 of 512 x 512); larger ones would not
  // fit into the GPU's memory.
  PB_RETURN_IF_ERROR(bench::MeasureVolumes(std::clamp<std::int64_t>(count / 4, 1, 64),
                                           std::clamp<std::int64_t>(side * 3 / 16, 24, 96)));
  PB_RETURN_IF_ERROR(MeasureCopies(batch));
  return MeasureShared(batch, other);
}

}  // namespace
}  // namespace patchbay::ops

int main(int argc, char** argv) {
  patchbay::bench::OtherProcess other;
  std::string reason;
  if (patchbay::memory::ListGpus(&reason).empty()) {
    std::fprintf(stderr, "patchbay-bench-gpu: nothing measured: %s\n", reason.c_str());
    return 1;
  }
  const std::int64_t patches = argc > 1 ? std::atoll(argv[1]) : 256;
  const std::int64_t side = argc > 2 ? std::atoll(argv[2]) : 512;
  if (patches < 1 || patches > 4096 || side < 16 || side > 4096) {
    std::fprintf(stderr, "usage: patchbay-bench-gpu [PATCHES (1 to 4096) [SIDE (16 to 4096)]]\n");
    return 2;
  }
  const patchbay::Status measured = patchbay::ops::Measure(patches, side, other);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "patchbay-bench-gpu: %s\n", patchbay::Describe(measured).c_str());
  return 1;
}
