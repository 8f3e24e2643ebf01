// Time per frame of 256 x 256: FFTW alone, the statistics alone, and spectral whole. One thread.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>
#include <fftw3.h>
#include <immintrin.h>

#include "ops/spectral/spectral_frames.h"
#include "runtime/core/status.h"

namespace patchbay::ops {
namespace {

constexpr int kFrame = 256, kHalf = kFrame / 2;
constexpr std::int64_t kHeight = 1024 + kHalf, kWidth = 4096;

/// Soft blobs and noise: a spectrum that falls off as tissue's does.
std::vector<std::uint8_t> Texture(std::int64_t height, std::int64_t width) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 6);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width));
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const double fy = static_cast<double>(y), fx = static_cast<double>(x);
      const double value = 170 + 30 * std::sin(fy / 9 + std::cos(fx / 31)) +
                           20 * std::sin(fx / 5 + 3 * std::cos(fy / 23)) + noise(random);
      pixels[static_cast<std::size_t>(y * width + x)] =
          static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
  return pixels;
}

void CountPerFrame(benchmark::State& state, std::int64_t frames) {
  const auto all = static_cast<double>(state.iterations() * frames);
  state.counters["us/frame"] =
      benchmark::Counter(all * 1e-6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["Mpx/s"] =
      benchmark::Counter(all * kHalf * kHalf * 1e-6, benchmark::Counter::kIsRate);
}

/// Real to complex, single precision, one plan for all frames, as a first version would use it.
void FftwAlone(benchmark::State& state) {
  float* in = fftwf_alloc_real(kFrame * kFrame);
  fftwf_complex* out = fftwf_alloc_complex(kFrame * (kHalf + 1));
  const unsigned flags = state.range(0) != 0 ? FFTW_MEASURE : FFTW_ESTIMATE;
  const fftwf_plan plan = fftwf_plan_dft_r2c_2d(kFrame, kFrame, in, out, flags);
  const std::vector<std::uint8_t> pixels = Texture(kFrame, kFrame);
  for (int i = 0; i < kFrame * kFrame; ++i)
    in[i] = static_cast<float>(pixels[static_cast<std::size_t>(i)]) - 170;
  for (auto _ : state) {
    fftwf_execute(plan);
    benchmark::ClobberMemory();
  }
  CountPerFrame(state, 1);
  fftwf_destroy_plan(plan);
  fftwf_free(in);
  fftwf_free(out);
}
BENCHMARK(FftwAlone)->ArgName("measured")->Arg(0)->Arg(1);

/// |X|^2 to levels of 1/1024 dB, eight at a time; n is a multiple of 8. Levels come out of order
/// within eight, which no statistic sees.
void Levels(const float* spectrum, int n, std::int32_t* q) {
  const __m256i root = _mm256_set1_epi32(0x3F3504F3);
  for (int i = 0; i < n; i += 8) {
    const __m256 a = _mm256_loadu_ps(spectrum + 2 * i), b = _mm256_loadu_ps(spectrum + 2 * i + 8);
    const __m256 squares = _mm256_hadd_ps(_mm256_mul_ps(a, a), _mm256_mul_ps(b, b));
    const __m256i bits =
        _mm256_sub_epi32(_mm256_castps_si256(_mm256_max_ps(squares, _mm256_set1_ps(1))), root);
    const __m256i exponent = _mm256_srai_epi32(bits, 23);
    const __m256i mantissa =
        _mm256_add_epi32(_mm256_sub_epi32(bits, _mm256_slli_epi32(exponent, 23)), root);
    const __m256 t = _mm256_sub_ps(_mm256_castsi256_ps(mantissa), _mm256_set1_ps(1));
    __m256 log = _mm256_set1_ps(778.8372F);
    for (const float term : {-1216.297F, 1500.233F, -2220.179F, 4446.815F}) {
      log = _mm256_fmadd_ps(log, t, _mm256_set1_ps(term));
    }
    const __m256 octaves = _mm256_mul_ps(_mm256_cvtepi32_ps(exponent), _mm256_set1_ps(3082.547F));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i),
                        _mm256_cvtps_epi32(_mm256_fmadd_ps(log, t, octaves)));
  }
}

__attribute__((optimize("O3"))) void AddUp(const std::int32_t* q, int n, std::uint64_t& sum,
                                           std::uint64_t& squares) {
  for (int i = 0; i < n; ++i) {
    const std::uint64_t level = static_cast<std::uint32_t>(q[i]);
    sum += level;
    squares += level * level;
  }
}

/// The counts of a spectrum that lies in memory: levels, sums and histogram. No rings.
void StatisticsAlone(benchmark::State& state) {
  constexpr int kCoefficients = kFrame * (kHalf + 1);
  std::mt19937 random(5);
  std::exponential_distribution<float> power(1e-4F);
  std::vector<float> spectrum(2 * kCoefficients);
  for (float& x : spectrum) x = power(random);
  std::vector<std::int32_t> q(kCoefficients);
  std::vector<std::uint32_t> histogram(4 * kSpectralBins);
  std::uint64_t sum = 0, squares = 0;
  for (auto _ : state) {
    Levels(spectrum.data(), kCoefficients, q.data());
    AddUp(q.data(), kCoefficients, sum, squares);
    for (std::size_t i = 0; i < q.size(); i += 4) {
      for (std::size_t k = 0; k < 4; ++k) {
        ++histogram[k * kSpectralBins + static_cast<std::size_t>(q[i + k]) / 256];
      }
    }
    benchmark::DoNotOptimize(sum);
    benchmark::DoNotOptimize(squares);
    benchmark::ClobberMemory();
  }
  CountPerFrame(state, 1);
}
BENCHMARK(StatisticsAlone);

void Spectral(benchmark::State& state, const plan::SpectralOptions& options, SpectralLevel level) {
  const std::vector<std::uint8_t> pixels = Texture(kHeight, kWidth);
  const SpectralPlane plane{pixels.data(), kWidth, 0, 0, kHeight, kWidth, kHeight, kWidth};
  const FrameRange all{0, plan::FramesAlong(kHeight, options), 0,
                       plan::FramesAlong(kWidth, options)};
  auto frames = SpectralFrames::Create(options, level);
  PB_CHECK(frames.ok());
  SpectralSums sums(options);
  for (auto _ : state) {
    PB_CHECK((*frames)->Add(plane, all, {}, sums).ok());
  }
  CountPerFrame(state, all.row_end * all.column_end);
}

constexpr plan::SpectralOptions kRect{};
constexpr plan::SpectralOptions kHann{.window = plan::SpectralWindow::kHann};
constexpr plan::SpectralOptions kGauss{.prefilter = plan::SpectralPrefilter::kGauss7};
constexpr plan::SpectralOptions kCoefficients{.coefficients = true};
BENCHMARK_CAPTURE(Spectral, rect, kRect, SpectralLevel::kBest);
BENCHMARK_CAPTURE(Spectral, hann, kHann, SpectralLevel::kBest);
BENCHMARK_CAPTURE(Spectral, gauss7, kGauss, SpectralLevel::kBest);
BENCHMARK_CAPTURE(Spectral, coefficients, kCoefficients, SpectralLevel::kBest);
BENCHMARK_CAPTURE(Spectral, rect_avx2, kRect, SpectralLevel::kAvx2);
BENCHMARK_CAPTURE(Spectral, gauss7_avx2, kGauss, SpectralLevel::kAvx2);
BENCHMARK_CAPTURE(Spectral, rect_plain, kRect, SpectralLevel::kPlain);

/// The first step of decoded tiles; a frame at hop 128 brings 16,384 pixels.
void Grey(benchmark::State& state) {
  const std::vector<std::uint8_t> rgb = Texture(kFrame, 3 * kFrame);
  std::vector<std::uint8_t> grey(kFrame * kFrame);
  for (auto _ : state) {
    GreyOfRgb(rgb.data(), kFrame * kFrame, grey.data());
    benchmark::ClobberMemory();
  }
  CountPerFrame(state, 4);
}
BENCHMARK(Grey);

void Split(benchmark::State& state) {
  const std::vector<std::uint8_t> rgb = Texture(kFrame, 3 * kFrame);
  std::vector<std::uint8_t> planes(3 * kFrame * kFrame);
  for (auto _ : state) {
    SplitRgb(rgb.data(), kFrame * kFrame, planes.data(), planes.data() + kFrame * kFrame,
             planes.data() + 2 * kFrame * kFrame);
    benchmark::ClobberMemory();
  }
  CountPerFrame(state, 4);
}
BENCHMARK(Split);

}  // namespace
}  // namespace patchbay::ops

BENCHMARK_MAIN();
