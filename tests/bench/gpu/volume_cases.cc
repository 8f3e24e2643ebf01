#include "tests/bench/gpu/volume_cases.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/chain/device_chain.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/memory/device_block.h"
#include "runtime/memory/gpu.h"
#include "tests/bench/gpu/device_copy.h"
#include "tests/bench/gpu/figure.h"
#include "tests/bench/gpu/median_seconds.h"

namespace patchbay::bench {
namespace {

using ops::Chain;
using ops::DeviceChain;

constexpr char kPreprocess[] = R"([{"window": {"range": [-150, 250]}}, {"zscore": {}}])";
constexpr char kOnePass[] = R"([{"flip": {"axes": ["z", "y", "x"]}}, {"brightness": {"p": 1}}])";
/// `amplitude`: of the field, in voxels.
std::string Moved(std::int64_t amplitude) {
  return StrCat(R"([{"affine": {"p": 1, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
    {"elastic": {"p": 1, "points": 7, "amplitude": )",
                amplitude, R"(}}, {"gaussian_noise": {"p": 1, "std": [0, 0.1]}},
    {"gamma": {"p": 1, "retain_stats": true}}])");
}

/// The ops of configs/colorectal.yaml.
std::string Colorectal(std::int64_t amplitude) {
  return StrCat(R"([{"flip": {"axes": ["z", "y", "x"]}},
    {"affine": {"p": 0.2, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
    {"elastic": {"p": 0.2, "points": 7, "amplitude": )",
                amplitude, R"(}}, {"gaussian_noise": {"p": 0.1, "std": [0, 0.1]}},
    {"gaussian_blur": {"p": 0.2, "sigma": [0.5, 1.0]}}, {"brightness": {"p": 0.15}},
    {"contrast": {"p": 0.15}}, {"low_resolution": {"p": 0.25}},
    {"gamma": {"p": 0.3, "retain_stats": true}}])");
}

/// Patches of one chain and their labels, in device memory.
struct VolumeBatch {
  memory::OwnedGpuStream stream;
  memory::DeviceBlock d_sources, d_source_labels, d_patches, d_patch_labels;
  std::vector<ops::DevicePatch> patches;
  std::vector<ops::DeviceLabels> labels;

  std::uint64_t Bytes() const {
    return d_sources.size_bytes() + d_source_labels.size_bytes() + d_patches.size_bytes() +
           d_patch_labels.size_bytes();
  }
};

/// Elements that differ from their neighbours, in every byte of `block`.
Status FillWithVoxels(const memory::DeviceBlock& block, memory::GpuStream stream) {
  std::vector<std::int16_t> voxels(block.size_bytes() / 2);
  for (std::size_t i = 0; i < voxels.size(); ++i) {
    voxels[i] = static_cast<std::int16_t>((i * 2654435761u >> 20 & 4095) - 1024);
  }
  return memory::CopyToDevice(block.d_data(), std::as_bytes(std::span(voxels)), stream);
}

StatusOr<VolumeBatch> MakeVolumeBatch(const Chain& chain, std::uint64_t count) {
  VolumeBatch batch;
  PB_ASSIGN_OR_RETURN(batch.stream, memory::OwnedGpuStream::Create());
  std::vector<std::uint64_t> places{0};  // in voxels, each a multiple of 128
  std::vector<DrawKey> keys;
  for (std::uint64_t i = 0; i < count; ++i) {
    keys.push_back({1, 0, i, 0, DrawStream::kParameters});
    const auto voxels = static_cast<std::uint64_t>(chain.SourceExtent(keys[i], {}).Pixels());
    places.push_back(places[i] + (voxels + 127) / 128 * 128);
  }
  const auto voxels = static_cast<std::uint64_t>(chain.options().patch.Pixels());
  PB_ASSIGN_OR_RETURN(batch.d_sources, memory::DeviceBlock::Allocate(places[count] * 2));
  PB_ASSIGN_OR_RETURN(batch.d_source_labels, memory::DeviceBlock::Allocate(places[count]));
  PB_ASSIGN_OR_RETURN(batch.d_patches, memory::DeviceBlock::Allocate(count * chain.patch_bytes()));
  PB_ASSIGN_OR_RETURN(batch.d_patch_labels, memory::DeviceBlock::Allocate(count * voxels));
  for (std::uint64_t i = 0; i < count; ++i) {
    batch.patches.push_back({batch.d_sources.d_data() + places[i] * 2,
                             batch.d_patches.d_data() + i * chain.patch_bytes(), keys[i]});
    batch.labels.push_back({batch.d_source_labels.d_data() + places[i],
                            batch.d_patch_labels.d_data() + i * voxels, keys[i]});
  }
  PB_RETURN_IF_ERROR(FillWithVoxels(batch.d_sources, batch.stream.get()));
  PB_RETURN_IF_ERROR(FillWithVoxels(batch.d_source_labels, batch.stream.get()));
  PB_RETURN_IF_ERROR(batch.stream.WaitSync());
  return batch;
}

/// Seconds of a copy on the device that reads and writes `bytes` in all.
StatusOr<double> SecondsOfCopy(std::uint64_t bytes, const memory::OwnedGpuStream& stream) {
  PB_ASSIGN_OR_RETURN(const auto d_from, memory::DeviceBlock::Allocate(bytes / 2));
  PB_ASSIGN_OR_RETURN(const auto d_to, memory::DeviceBlock::Allocate(bytes / 2));
  PB_RETURN_IF_ERROR(memory::FillDevice(d_from.d_data(), 1, bytes / 2, stream.get()));
  return MedianSeconds(stream, [&](memory::GpuStream queued) {
    return memory::CopyOnDevice(d_to.d_data(), d_from.d_data(), bytes / 2, queued);
  });
}

Status MeasureVolumeChain(std::string_view name, const std::string& augment, std::int64_t count,
                          std::int64_t side) {
  ops::ChainOptions options;
  options.patch = {side, side, side};
  options.channels = 1;
  options.source_dtype = DType::kInt16;
  options.dtype = DType::kFloat16;
  options.preprocess = *ParseJson(kPreprocess, "ops");
  options.augment = *ParseJson(augment, "ops");
  PB_ASSIGN_OR_RETURN(const Chain chain, Chain::Compile(options));
  PB_ASSIGN_OR_RETURN(const VolumeBatch batch,
                      MakeVolumeBatch(chain, static_cast<std::uint64_t>(count)));
  PB_ASSIGN_OR_RETURN(const double copy, SecondsOfCopy(batch.Bytes(), batch.stream));
  PB_ASSIGN_OR_RETURN(const DeviceChain device, DeviceChain::Create(chain, batch.stream.get()));
  ops::DeviceArena room;
  std::uint64_t kernels = 0;
  const auto launch = [&](memory::GpuStream stream) -> Status {
    PB_RETURN_IF_ERROR(batch.stream.WaitSync());  // the room is one batch's
    const std::uint64_t before = room.kernels();
    PB_RETURN_IF_ERROR(device.Begin(room, batch.patches.size()));
    PB_RETURN_IF_ERROR(device.Launch(batch.patches, room, stream));
    PB_RETURN_IF_ERROR(device.LaunchLabels(batch.labels, room, stream));
    kernels = room.kernels() - before;
    return absl::OkStatus();
  };
  PB_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(batch.stream, launch));
  PrintFigure(name, seconds, batch.Bytes(), seconds / copy, kernels);
  return absl::OkStatus();
}

}  // namespace

Status MeasureVolumes(std::int64_t patches, std::int64_t side) {
  const std::int64_t amplitude = std::max<std::int64_t>(side * 5 / 96, 1);
  const std::pair<std::string_view, std::string> cases[] = {
      {"volumes and labels, one pass", kOnePass},
      {"volumes and labels, affine, elastic, noise, gamma", Moved(amplitude)},
      {"volumes and labels, configs/colorectal.yaml", Colorectal(amplitude)}};
  for (const auto& [name, augment] : cases) {
    PB_RETURN_IF_ERROR(MeasureVolumeChain(name, augment, patches, side));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::bench
