// The parts alone: what tile decode, FFTW and the statistics cost each frame and core.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "runtime/core/strings.h"
#include "tests/bench/spectra/frame_passes.h"
#include "tests/bench/spectra/rivals.h"
#include "workers/sources/image_source.h"

namespace patchbay::bench {
namespace {

constexpr std::int64_t kBandColumns = 24;  ///< tiles decoded side by side; some megabytes
constexpr int kFftBatch = 1;               ///< its spectra stay in the core's cache
constexpr int kTransforms = 4'000;

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Runs work(core) on every core at once; the processor seconds of all of them together.
double OnAllCores(int cores, const std::function<double(int)>& work) {
  std::vector<double> spent(static_cast<std::size_t>(cores));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < cores; ++i) {
      threads.emplace_back([&, i] { spent[static_cast<std::size_t>(i)] = work(i); });
    }
  }
  double sum = 0;
  for (const double s : spent) sum += s;
  return sum;
}

/// Decodes every tile of the core's share of the slide into the same memory; fetching not counted.
StatusOr<double> DecodeShare(const std::string& slide, int core, int cores) {
  PB_ASSIGN_OR_RETURN(const auto source, workers::OpenImage(Folders::OfThisUser(), slide));
  const workers::LevelLayout& level = source->layout().levels[0];
  const auto scratch = source->MakeScratch();
  workers::EncodedPatch patch;
  const std::int64_t side = level.chunk.x * kBandColumns, tall = level.chunk.y;
  std::vector<std::byte> rgb(static_cast<std::size_t>(side * tall * 3));
  double spent = 0;
  for (std::int64_t y = core * tall; y < level.size.y; y += cores * tall) {
    for (std::int64_t x = 0; x < level.size.x; x += side) {
      const Box box =
          Box2D(y, x, std::min(tall, level.size.y - y), std::min(side, level.size.x - x));
      PB_RETURN_IF_ERROR(source->Fetch(0, box, patch));
      const auto view = ContiguousView(rgb.data(), DType::kUint8,
                                       std::array<std::int64_t, 3>{box.height, box.width, 3});
      const double start = ThreadSeconds();
      PB_RETURN_IF_ERROR(source->Decode(patch, view, 255, *scratch));
      spent += ThreadSeconds() - start;
    }
  }
  return spent;
}

/// Noise that fills the histogram as tissue does: all levels from 0 to 90 dB.
void FillFrame(float* frame, int seed) {
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2'654'435'761U + 1;
  for (int i = 0; i < kFrame * kFrame; ++i) {
    state = state * 1'664'525U + 1'013'904'223U;
    const float wave = 60.0F * std::sin(static_cast<float>(i % kFrame) * 0.05F);
    frame[i] = 128.0F + wave + static_cast<float>(state >> 27);
  }
}

double TransformOnly(int core) {
  float* frame = fftwf_alloc_real(std::size_t{kFftBatch} * kFrame * kFrame);
  fftwf_complex* spectrum = fftwf_alloc_complex(std::size_t{kFftBatch} * kSpectrum);
  const fftwf_plan plan = PlanFrames(kFftBatch, frame, spectrum);
  for (int i = 0; i < kFftBatch; ++i) FillFrame(frame + i * kFrame * kFrame, core);
  const double start = ThreadSeconds();
  for (int i = 0; i < kTransforms; i += kFftBatch) fftwf_execute(plan);
  const double spent = ThreadSeconds() - start;
  fftwf_destroy_plan(plan);
  fftwf_free(frame);
  fftwf_free(spectrum);
  return spent;
}

/// Mean, deviation and histogram of one spectrum in the cache, a row at a time: logarithms and sums
/// in vectors, four histograms so that equal neighbours do not wait for each other.
struct RowStatistics {
  double sum = 0, squares = 0;
  std::uint32_t counts[4][kBins] = {};

  void Add(const fftwf_complex* row) {
    float level[kHalfColumns + 3];
    std::int32_t bin[kHalfColumns + 3];
    float row_sum = 0, row_squares = 0;
    for (int x = 0; x < kHalfColumns; ++x) {
      const float power = std::max(row[x][0] * row[x][0] + row[x][1] * row[x][1], 1.0F);
      level[x] = 10.0F * std::log10(power);
    }
    for (int x = 0; x < kHalfColumns; ++x) {
      row_sum += level[x];
      row_squares += level[x] * level[x];
      bin[x] = static_cast<std::int32_t>(level[x] * 4.0F);
    }
    sum += 2.0 * row_sum - level[0] - level[kHalfColumns - 1];
    squares +=
        2.0 * row_squares - level[0] * level[0] - level[kHalfColumns - 1] * level[kHalfColumns - 1];
    for (int x = 0; x + 1 < kHalfColumns; x += 4) {
      for (int lane = 0; lane < 4; ++lane) counts[lane][bin[x + lane]] += 2;
    }
    --counts[0][bin[0]];
    ++counts[0][bin[kHalfColumns - 1]];
  }
};

double StatisticsOnly(int core) {
  float* frame = fftwf_alloc_real(std::size_t{kFrame} * kFrame);
  fftwf_complex* spectrum = fftwf_alloc_complex(kSpectrum);
  const fftwf_plan plan = PlanFrames(1, frame, spectrum);
  FillFrame(frame, core);
  fftwf_execute(plan);
  RowStatistics statistics;
  const double start = ThreadSeconds();
  for (int i = 0; i < kTransforms; ++i) {
    for (int y = 0; y < kFrame; ++y) statistics.Add(spectrum + std::int64_t{y} * kRowStride);
  }
  const double spent = ThreadSeconds() - start;
  fftwf_destroy_plan(plan);
  fftwf_free(frame);
  fftwf_free(spectrum);
  // The sums are used, so that the work is done.
  return statistics.sum > 0 && statistics.counts[0][0] < 1U << 31 ? spent : 0;
}

/// The op over the slide's first rows, grey in memory, a band of frames at a time.
StatusOr<double> OpOnly(const std::string& slide, std::int64_t& frames) {
  PB_ASSIGN_OR_RETURN(const auto source, workers::OpenImage(Folders::OfThisUser(), slide));
  const workers::LevelLayout& level = source->layout().levels[0];
  const auto scratch = source->MakeScratch();
  const std::int64_t height = std::min<std::int64_t>(level.size.y, kKept + 8 * kHop);
  const std::int64_t width = std::min<std::int64_t>(level.size.x, 8192);
  workers::EncodedPatch patch;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(height * width * 3)), grey(rgb.size() / 3);
  PB_RETURN_IF_ERROR(source->Fetch(0, Box2D(0, 0, height, width), patch));
  const auto view = ContiguousView(reinterpret_cast<std::byte*>(rgb.data()), DType::kUint8,
                                   std::array<std::int64_t, 3>{height, width, 3});
  PB_RETURN_IF_ERROR(source->Decode(patch, view, 255, *scratch));
  ops::GreyOfRgb(rgb.data(), height * width, grey.data());
  const plan::SpectralOptions options;
  PB_ASSIGN_OR_RETURN(const auto op, ops::SpectralFrames::Create(options));
  ops::SpectralSums sums(options);
  const ops::SpectralPlane plane{grey.data(), width,        0,           0, height,
                                 width,       level.size.y, level.size.x};
  const ops::FrameRange range{0, plan::FramesAlong(height, options), 0,
                              plan::FramesAlong(width, options)};
  const double start = ThreadSeconds();
  for (int i = 0; i < 4; ++i) PB_RETURN_IF_ERROR(op->Add(plane, range, {}, sums));
  frames += static_cast<std::int64_t>(sums.frames);
  return ThreadSeconds() - start;
}

}  // namespace

StatusOr<FloorTimes> MeasureFloor(const RivalOptions& options) {
  PB_ASSIGN_OR_RETURN(const auto source, workers::OpenImage(Folders::OfThisUser(), options.slide));
  const workers::LevelLayout& level = source->layout().levels[0];
  FloorTimes times;
  times.frames = ((level.size.y - kFrame) / kHop + 1) * ((level.size.x - kFrame) / kHop + 1);
  std::vector<Status> ends(static_cast<std::size_t>(options.cores));
  const auto keep = [&](int core, const StatusOr<double>& spent) {
    ends[static_cast<std::size_t>(core)] = spent.status();
    return spent.ok() ? *spent : 0.0;
  };
  times.decode_s = OnAllCores(options.cores,
                              [&](int core) {
                                return keep(core, DecodeShare(options.slide, core, options.cores));
                              }) /
                   static_cast<double>(times.frames);
  for (const Status& end : ends) PB_RETURN_IF_ERROR(end);
  const double runs = static_cast<double>(options.cores) * kTransforms;
  times.fft_s = OnAllCores(options.cores, TransformOnly) / runs;
  times.statistics_s = OnAllCores(options.cores, StatisticsOnly) / runs;
  std::vector<std::int64_t> frames(static_cast<std::size_t>(options.cores));
  const double spent = OnAllCores(options.cores, [&](int core) {
    return keep(core, OpOnly(options.slide, frames[static_cast<std::size_t>(core)]));
  });
  for (const Status& end : ends) PB_RETURN_IF_ERROR(end);
  std::int64_t all = 0;
  for (const std::int64_t f : frames) all += f;
  times.op_s = spent / static_cast<double>(std::max<std::int64_t>(all, 1));
  return times;
}

}  // namespace patchbay::bench
