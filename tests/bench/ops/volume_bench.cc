// The chain of a CT alone: one thread, 96 x 96 x 96 voxels of int16 to float16, at nnU-Net's
// probabilities and with every transform on every patch. Sources are made beforehand, a box for
// each draw.
#include <algorithm>
#include <vector>

#include <benchmark/benchmark.h>

#include "ops/chain/chain.h"
#include "runtime/base/strings.h"

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

void BM_Volume(benchmark::State& state, const char* augment, CpuLevel level) {
  const auto chain = ChainOf(augment, level);
  if (!chain.ok()) return state.SkipWithError(std::string(chain.status().message()).c_str());
  const plan::VolumeFacts facts;
  std::int64_t most = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    most = std::max(most, chain->SourceExtent(KeyOf(i), facts).Pixels());
  }
  std::vector<std::int16_t> source(static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] =
        static_cast<std::int16_t>(static_cast<std::int64_t>(i * 2654435761u >> 20 & 4095) - 1024);
  }
  std::vector<std::byte> out(chain->patch_bytes()), scratch;
  std::uint64_t ordinal = 0;
  for (auto _ : state) {
    const DrawKey key = KeyOf(ordinal++ % kDraws);
    const Extent size = chain->SourceExtent(key, facts);
    const TensorView view =
        ContiguousView<4>(reinterpret_cast<std::byte*>(source.data()), DType::kInt16,
                          {size.z, size.y, size.x, std::int64_t{1}});
    if (!chain->Run(view, key, out, scratch, nullptr, &facts).ok()) {
      state.SkipWithError("the chain failed");
    }
  }
  state.SetLabel(std::string(chain->cpu_path()));
  state.counters["patches/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(BM_Volume, preprocess, "[]", CpuLevel::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, nnunet, kNnunet, CpuLevel::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, nnunet_avx2, kNnunet, CpuLevel::kAvx2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, always, kAlways, CpuLevel::kBest)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Volume, always_avx2, kAlways, CpuLevel::kAvx2)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace patchbay::ops

BENCHMARK_MAIN();
