// The transform chain alone: one thread, a 512 x 512 x 3 patch into a ring that no cache holds; and
// a tissue mask of a large thumbnail, stain fits and resampling.
#include <cmath>
#include <vector>

#include <benchmark/benchmark.h>
#include <immintrin.h>

#include "ops/all_ops.h"
#include "ops/chain/chain.h"
#include "ops/geometry/area_average.h"
#include "ops/icc_to_srgb/icc_lookup.h"
#include "ops/stain_normalize/fit_stains.h"
#include "ops/tissue/tissue_mask.h"
#include "runtime/core/strings.h"
#include "runtime/memory/host_buffer.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kSide = 512;
/// Larger than the last-level cache, as the slots of a ring are.
constexpr std::size_t kRingPatches = 64;

ChainOptions Options(DType dtype, PatchLayout layout, CpuLevel level, bool rotate) {
  ChainOptions options;
  options.patch.y = options.patch.x = kSide;
  options.dtype = dtype;
  options.layout = layout;
  options.cpu_level = level;
  options.preprocess = Json::array({Json{
      {"normalize", {{"scale", 255}, {"mean", {0.7, 0.55, 0.7}}, {"std", {0.2, 0.2, 0.2}}}}}});
  options.augment = Json::array({Json{{"flip", Json::object()}}});
  if (rotate) options.augment.push_back(Json{{"rotate90", Json::object()}});
  return options;
}

void BM_Chain(benchmark::State& state, DType dtype, PatchLayout layout, CpuLevel level,
              bool rotate) {
  const auto chain = Chain::Compile(Options(dtype, layout, level, rotate));
  auto ring = memory::HostBuffer::Allocate(kRingPatches * chain->patch_bytes());
  auto source = memory::HostBuffer::Allocate(kSide * kSide * 3);
  for (std::size_t i = 0; i < source->bytes().size(); ++i) {
    source->bytes()[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  }
  const TensorView view = ContiguousView<3>(source->data(), DType::kUint8, {kSide, kSide, 3});
  std::vector<std::byte> scratch;
  std::uint64_t ordinal = 0;
  for (auto _ : state) {
    const auto out =
        ring->bytes().subspan(ordinal % kRingPatches * chain->patch_bytes(), chain->patch_bytes());
    const Status status =
        chain->Run(view, {1, 0, ordinal++, 0, DrawStream::kParameters}, out, scratch);
    if (!status.ok()) state.SkipWithError("the chain failed");
  }
  state.SetLabel(std::string(chain->cpu_path()));
  state.counters["patches/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["Mpx/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * kSide * kSide / 1e6, benchmark::Counter::kIsRate);
}

/// The floor of BM_Chain to float32: the same rows of the same planes past the caches, and nothing
/// computed.
void BM_StoresAlone(benchmark::State& state) {
  constexpr std::int64_t kPlane = kSide * kSide, kPatchFloats = 3 * kPlane;
  auto ring = memory::HostBuffer::Allocate(kRingPatches * kPatchFloats * sizeof(float));
  const __m256 value = _mm256_set1_ps(0.5f);
  std::size_t patch = 0;
  for (auto _ : state) {
    auto* const out =
        reinterpret_cast<float*>(ring->data()) + patch++ % kRingPatches * kPatchFloats;
    for (std::int64_t y = 0; y < kSide; ++y) {
      for (float* row = out + y * kSide; row < out + kPatchFloats; row += kPlane) {
        for (std::int64_t x = 0; x < kSide; x += 8) _mm256_stream_ps(row + x, value);
      }
    }
    _mm_sfence();
  }
}

/// The lookup of about a scanner's profile of gamma 1.8.
IccLookup SomeLookup() {
  std::vector<double> levels;
  for (std::size_t node = 0; node < kIccNodes; ++node) {
    const std::size_t at[] = {node / (kIccGrid * kIccGrid), node / kIccGrid % kIccGrid,
                              node % kIccGrid};
    for (const std::size_t a : at) {
      levels.push_back(255 * std::pow(static_cast<double>(a) / (kIccGrid - 1), 1.8 / 2.2));
    }
  }
  return *IccLookup::FromLevels(levels);
}

/// The chains that training on slides runs; `list` is an augment list whose every op acts (p: 1).
void BM_Float(benchmark::State& state, const Json& list, CpuLevel level) {
  ChainOptions options;
  options.patch = Flat(kSide, kSide);
  options.dtype = DType::kFloat16;
  options.cpu_level = level;
  options.augment = list;
  const auto chain = Chain::Compile(options);
  if (!chain.ok()) return state.SkipWithError(std::string(chain.status().message()).c_str());
  auto ring = memory::HostBuffer::Allocate(kRingPatches * chain->patch_bytes());
  const Extent size = chain->source_extent();
  auto source = memory::HostBuffer::Allocate(static_cast<std::uint64_t>(size.y * size.x * 3));
  for (std::size_t i = 0; i < source->bytes().size(); ++i) {
    source->bytes()[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  }
  const TensorView view = ContiguousView<3>(source->data(), DType::kUint8, {size.y, size.x, 3});
  const plan::MacenkoFit fit = plan::DefaultMacenko();
  const IccLookup icc = SomeLookup();
  ImageColours colours = &fit;
  colours.icc = &icc;
  std::vector<std::byte> scratch;
  std::uint64_t ordinal = 0;
  for (auto _ : state) {
    const auto out =
        ring->bytes().subspan(ordinal % kRingPatches * chain->patch_bytes(), chain->patch_bytes());
    const Status status =
        chain->Run(view, {1, 0, ordinal++, 0, DrawStream::kParameters}, out, scratch, colours);
    if (!status.ok()) state.SkipWithError("the chain failed");
  }
  state.SetLabel(std::string(chain->cpu_path()));
  state.counters["patches/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

constexpr const char* kColourList = R"([
    {"affine": {"p": 1, "degrees": [-15, 15], "scale": [0.9, 1.1]}}, {"stain_normalize": {}},
    {"hed_jitter": {"p": 1}},
    {"normalize": {"mean": [0.7, 0.55, 0.7], "std": [0.2, 0.2, 0.2]}}])";
constexpr const char* kFullList = R"([
    {"affine": {"p": 1, "degrees": [-15, 15], "scale": [0.9, 1.1]}},
    {"elastic": {"p": 1, "points": 8, "amplitude": 10}}, {"stain_normalize": {}},
    {"hed_jitter": {"p": 1}}, {"gaussian_noise": {"p": 1, "std": [0.01, 0.02]}},
    {"normalize": {"mean": [0.7, 0.55, 0.7], "std": [0.2, 0.2, 0.2]}}])";

BENCHMARK_CAPTURE(BM_Float, affine_stain_hed_normalize, *ParseJson(kColourList, "ops"),
                  CpuLevel::kBest);
BENCHMARK_CAPTURE(BM_Float, affine_stain_hed_normalize_avx2, *ParseJson(kColourList, "ops"),
                  CpuLevel::kAvx2);
BENCHMARK_CAPTURE(BM_Float, and_elastic_noise, *ParseJson(kFullList, "ops"), CpuLevel::kBest);
BENCHMARK_CAPTURE(BM_Float, and_elastic_noise_avx2, *ParseJson(kFullList, "ops"), CpuLevel::kAvx2);

/// Each op of 2-D images alone, as its row's example has it.
const bool kOpsRegistered = [] {
  for (const plan::OpRow& op : Table().rows()) {
    if (op.axes == plan::OpAxes::kVolume) continue;
    benchmark::RegisterBenchmark(StrCat("BM_Float/", op.name()).c_str(), [&op](auto& state) {
      BM_Float(state, Json::array({Json{{op.name(), op.example}}}), CpuLevel::kBest);
    });
  }
  return true;
}();

/// Squares of tissue on glass, both noisy, with every step on.
void BM_TissueMask(benchmark::State& state) {
  const std::int64_t side = state.range(0);
  auto source = memory::HostBuffer::Allocate(static_cast<std::uint64_t>(side * side * 3));
  for (std::int64_t i = 0; i < side * side; ++i) {
    const bool tissue = (i / side / 64 + i % side / 64) % 2 != 0;
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto noise = static_cast<std::uint32_t>(3 * i + c) * 2654435761u >> 27;
      source->data()[3 * i + c] = static_cast<std::byte>((tissue && c == 1 ? 80u : 200u) + noise);
    }
  }
  const TensorView view = ContiguousView<3>(source->data(), DType::kUint8, {side, side, 3});
  const TissueMaskOptions options{.close_um = 40, .min_area_um2 = 5'000, .max_hole_um2 = 5'000};
  for (auto _ : state) {
    const auto mask = MakeTissueMask(view, 4.0, options);
    if (!mask.ok() || mask->tissue_pixels == 0) state.SkipWithError("no mask");
  }
}
BENCHMARK(BM_TissueMask)->Arg(1'024)->Arg(4'096)->Unit(benchmark::kMillisecond);

/// Colours of a slide: background, and tissue around two stains with noise.
std::vector<std::uint8_t> SlideColours(std::int64_t pixels) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * pixels), 244);
  std::uint32_t noise = 1;
  const auto next = [&noise] {
    noise = noise * 1'664'525u + 1'013'904'223u;
    return noise >> 24;
  };
  for (std::int64_t i = 0; i < pixels; ++i) {
    std::uint8_t* const pixel = rgb.data() + 3 * i;
    if ((i >> 12) % 2 == 0) continue;
    const std::uint32_t depth = next() / 2;
    pixel[0] = static_cast<std::uint8_t>(220 - depth + next() / 16);
    pixel[1] = static_cast<std::uint8_t>(200 - depth + next() / 16);
    pixel[2] = static_cast<std::uint8_t>(225 - depth / 2 + next() / 16);
  }
  return rgb;
}

/// One thread counting a shard's pixels, the histogram's beginning and end with it, and the fit.
void BM_StainFit(benchmark::State& state) {
  const std::int64_t side = state.range(0);
  std::vector<std::uint8_t> rgb = SlideColours(side * side);
  const TensorView view =
      ContiguousView<3>(reinterpret_cast<std::byte*>(rgb.data()), DType::kUint8, {side, side, 3});
  for (auto _ : state) {
    StainCounter counter;
    if (!counter.Add(view).ok()) state.SkipWithError("not counted");
    benchmark::DoNotOptimize(FitStains(counter.Take()));
  }
  state.counters["Mpx/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * side * side) / 1e6, benchmark::Counter::kIsRate);
}
BENCHMARK(BM_StainFit)->Arg(4'096)->Arg(16'384)->Unit(benchmark::kMillisecond);

/// A patch of 512 x 512 out of a box that is larger by a ratio in 1/100.
void BM_AreaAverage(benchmark::State& state) {
  const std::int64_t source = kSide * state.range(0) / 100;
  std::vector<std::uint8_t> rgb = SlideColours(source * source);
  std::vector<std::byte> out(kSide * kSide * 3);
  const TensorView from = ContiguousView<3>(reinterpret_cast<std::byte*>(rgb.data()), DType::kUint8,
                                            {source, source, 3});
  const TensorView to = ContiguousView<3>(out.data(), DType::kUint8, {kSide, kSide, 3});
  const AxisMap map{0, source, kSide};
  AreaAverage average;
  for (auto _ : state) {
    if (!average.Run(from, map, map, to).ok()) state.SkipWithError("not averaged");
  }
  state.counters["patches/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_AreaAverage)->Arg(140)->Arg(200)->Unit(benchmark::kMillisecond);

constexpr auto kNchw = PatchLayout::kNchw;
constexpr auto kNhwc = PatchLayout::kNhwc;

BENCHMARK_CAPTURE(BM_Chain, f16_nchw, DType::kFloat16, kNchw, CpuLevel::kBest, false);
BENCHMARK_CAPTURE(BM_Chain, f16_nchw_avx2, DType::kFloat16, kNchw, CpuLevel::kAvx2, false);
BENCHMARK_CAPTURE(BM_Chain, f16_nchw_table, DType::kFloat16, kNchw, CpuLevel::kTable, false);
BENCHMARK_CAPTURE(BM_Chain, f16_nchw_rotate90, DType::kFloat16, kNchw, CpuLevel::kBest, true);
BENCHMARK_CAPTURE(BM_Chain, f16_nchw_rotate90_avx2, DType::kFloat16, kNchw, CpuLevel::kAvx2, true);
BENCHMARK_CAPTURE(BM_Chain, bf16_nchw_avx2, DType::kBfloat16, kNchw, CpuLevel::kAvx2, false);
BENCHMARK_CAPTURE(BM_Chain, f32_nchw, DType::kFloat32, kNchw, CpuLevel::kBest, false);
BENCHMARK(BM_StoresAlone);
BENCHMARK_CAPTURE(BM_Chain, f32_nchw_avx2, DType::kFloat32, kNchw, CpuLevel::kAvx2, false);
BENCHMARK_CAPTURE(BM_Chain, f16_nhwc, DType::kFloat16, kNhwc, CpuLevel::kBest, false);
BENCHMARK_CAPTURE(BM_Chain, f16_nhwc_avx2, DType::kFloat16, kNhwc, CpuLevel::kAvx2, false);
BENCHMARK_CAPTURE(BM_Chain, u8_nchw, DType::kUint8, kNchw, CpuLevel::kBest, false);
BENCHMARK_CAPTURE(BM_Chain, u8_nchw_avx2, DType::kUint8, kNchw, CpuLevel::kAvx2, false);

}  // namespace
}  // namespace patchbay::ops

BENCHMARK_MAIN();
