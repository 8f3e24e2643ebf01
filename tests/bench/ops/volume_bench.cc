// The chain of a CT alone: one thread, 96 x 96 x 96 voxels of int16 to float16 and their labels, at
// nnU-Net's probabilities and with every transform on every patch. Sources are made beforehand, a
// box for each draw. Resampling of a whole volume by cubic B-splines, on one thread and on two.
#include <algorithm>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "ops/chain/chain.h"
#include "ops/geometry/resample.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kSide = 96;
constexpr std::uint64_t kDraws = 32;

constexpr char kNnunet[] = R"([{"flip": {"axes": ["z", "y", "x"]}},
  {"affine": {"p": 0.2, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
  {"gaussian_noise": {"p": 0.1, "std": [0, 0.1]}}, {"gaussian_blur": {"p": 0.2}},
  {"brightness": {"p": 0.15}}, {"contrast": {"p": 0.15}}, {"low_resolution": {"p": 0.25}},
  {"gamma": {"p": 0.1, "invert": true, "retain_stats": true}}, {"gamma": {"p": 0.3, "retain_stats": true}}])";
constexpr char kAlways[] = R"([{"flip": {"axes": ["z", "y", "x"]}},
  {"affine": {"p": 1, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
  {"gaussian_noise": {"p": 1, "std": [0, 0.1]}}, {"gaussian_blur": {"p": 1}},
  {"brightness": {"p": 1}}, {"contrast": {"p": 1}}, {"low_resolution": {"p": 1}},
  {"gamma": {"p": 1, "invert": true, "retain_stats": true}}, {"gamma": {"p": 1, "retain_stats": true}}])";
// configs/colorectal.yaml
constexpr char kColorectal[] = R"([{"flip": {"axes": ["z", "y", "x"]}},
  {"affine": {"p": 0.2, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
  {"elastic": {"p": 0.2, "points": 7, "amplitude": 5}},
  {"gaussian_noise": {"p": 0.1, "std": [0, 0.1]}}, {"gaussian_blur": {"p": 0.2, "sigma": [0.5, 1.0]}},
  {"brightness": {"p": 0.15}}, {"contrast": {"p": 0.15}}, {"low_resolution": {"p": 0.25}},
  {"gamma": {"p": 0.3, "retain_stats": true}}])";
constexpr char kColorectalAlways[] = R"([{"flip": {"axes": ["z", "y", "x"]}},
  {"affine": {"p": 1, "degrees": [-30, 30], "scale": [0.7, 1.4]}},
  {"elastic": {"p": 1, "points": 7, "amplitude": 5}},
  {"gaussian_noise": {"p": 1, "std": [0, 0.1]}}, {"gaussian_blur": {"p": 1, "sigma": [0.5, 1.0]}},
  {"brightness": {"p": 1}}, {"contrast": {"p": 1}}, {"low_resolution": {"p": 1}},
  {"gamma": {"p": 1, "retain_stats": true}}])";

DrawKey KeyOf(std::uint64_t ordinal) { return {1, 0, ordinal, 0, DrawStream::kParameters}; }

StatusOr<Chain> ChainOf(const char* augment, CpuLevel level) {
  ChainOptions options;
  options.patch = {kSide, kSide, kSide};
  options.channels = 1;
  options.source_dtype = DType::kInt16;
  options.dtype = DType::kFloat16;
  options.cpu_level = level;
  options.preprocess = *ParseJson(R"([{"window": {"range": [-150, 250]}}, {"zscore": {}}])", "ops");
  options.augment = *ParseJson(augment, "ops");
  return Chain::Compile(options);
}

/// Voxels that differ from their neighbours, -1024 to 3071.
template <typename T>
std::vector<T> NoiseOf(std::int64_t voxels) {
  std::vector<T> values(static_cast<std::size_t>(voxels));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(static_cast<std::int64_t>(i * 2654435761u >> 20 & 4095) - 1024);
  }
  return values;
}

/// `source` as a patch's box of this size.
template <typename T>
TensorView BoxOf(std::vector<T>& source, DType dtype, const Extent& size) {
  return ContiguousView<4>(reinterpret_cast<std::byte*>(source.data()), dtype,
                           {size.z, size.y, size.x, std::int64_t{1}});
}

void BM_Volume(benchmark::State& state, const char* augment, CpuLevel level) {
  const auto chain = ChainOf(augment, level);
  if (!chain.ok()) return state.SkipWithError(std::string(chain.status().message()).c_str());
  const plan::VolumeFacts facts;
  std::int64_t most = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    most = std::max(most, chain->SourceExtent(KeyOf(i), facts).Pixels());
  }
  auto source = NoiseOf<std::int16_t>(most);
  std::vector<std::uint8_t> labels(static_cast<std::size_t>(most), 1);
  std::vector<std::uint8_t> label_out(static_cast<std::size_t>(chain->options().patch.Pixels()));
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  std::uint64_t ordinal = 0;
  for (auto _ : state) {
    const DrawKey key = KeyOf(ordinal++ % kDraws);
    const Extent size = chain->SourceExtent(key, facts);
    const TensorView voxels = BoxOf(source, DType::kInt16, size);
    if (!chain->Run(voxels, key, out, scratch, {}, &facts).ok() ||
        !chain->RunLabels(BoxOf(labels, DType::kUint8, size), key, label_out, scratch, facts)
             .ok()) {
      state.SkipWithError("the chain failed");
    }
  }
  state.SetLabel(std::string(chain->cpu_path()));
  state.counters["patches/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// 60 x 256 x 256 to 100 x 171 x 171: slices of 5 mm and pixels of 1 mm to 3 and 1.5.
void BM_ResampleCubic(benchmark::State& state) {
  const Extent from{60, 256, 256}, to{100, 171, 171};
  const auto resample = Resample::Make(from, to, 3);
  if (!resample.ok()) return state.SkipWithError(std::string(resample.status().message()).c_str());
  const auto in = NoiseOf<float>(from.Pixels());
  std::vector<float> planes(static_cast<std::size_t>(from.z * to.y * to.x));
  std::vector<float> out(static_cast<std::size_t>(to.Pixels()));
  const auto threads = state.range(0);
  const auto on_threads = [threads](std::int64_t count, const auto& part) {
    std::vector<std::jthread> running;
    for (std::int64_t i = 1; i < threads; ++i) {
      const std::int64_t first = count * i / threads;
      running.emplace_back(part, first, count * (i + 1) / threads - first);
    }
    part(0, count / threads);
  };
  for (auto _ : state) {
    on_threads(from.z, [&](std::int64_t first, std::int64_t count) {
      resample->Planes(in.data(), first, count, planes.data());
    });
    on_threads(to.y, [&](std::int64_t first, std::int64_t count) {
      resample->Rows(planes.data(), first, count, out.data());
    });
    benchmark::DoNotOptimize(out.data());
  }
}

BENCHMARK(BM_ResampleCubic)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, preprocess, "[]", CpuLevel::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, nnunet, kNnunet, CpuLevel::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, nnunet_avx2, kNnunet, CpuLevel::kAvx2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, always, kAlways, CpuLevel::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, colorectal, kColorectal, CpuLevel::kBest)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, colorectal_always, kColorectalAlways, CpuLevel::kBest)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, always_avx2, kAlways, CpuLevel::kAvx2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace patchbay::ops

BENCHMARK_MAIN();
