#include "tests/bench/spectra/frame_passes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

namespace patchbay::bench {

fftwf_plan PlanFrames(int batch, float* frames, fftwf_complex* spectra) {
  static std::mutex planner_mu;
  const std::lock_guard lock(planner_mu);
  const int shape[] = {kFrame, kFrame}, placed[] = {kFrame, kRowStride};
  return fftwf_plan_many_dft_r2c(2, shape, batch, frames, nullptr, 1, kFrame * kFrame, spectra,
                                 placed, 1, kSpectrum, FFTW_MEASURE);
}

FramePasses::FramePasses()
    : frames_(fftwf_alloc_real(std::size_t{kBatch} * kFrame * kFrame)),
      levels_(fftwf_alloc_real(std::size_t{kBatch} * kSpectrum)),
      spectra_(fftwf_alloc_complex(std::size_t{kBatch} * kSpectrum)),
      plan_(PlanFrames(kBatch, frames_, spectra_)) {
  std::memset(spectra_, 0, sizeof(fftwf_complex) * kBatch * kSpectrum);  // what lies between rows
}

FramePasses::~FramePasses() {
  fftwf_destroy_plan(plan_);
  fftwf_free(frames_);
  fftwf_free(levels_);
  fftwf_free(spectra_);
}

void FramePasses::Add(const std::uint8_t* pixels, std::int64_t row_bytes) {
  float* frame = frames_ + std::int64_t{held_} * kFrame * kFrame;
  for (int y = 0; y < kFrame; ++y) {
    for (int x = 0; x < kFrame; ++x) frame[y * kFrame + x] = pixels[y * row_bytes + x];
  }
  if (++held_ == kBatch) Finish();
}

void FramePasses::Finish() {
  if (held_ == 0) return;
  Transform();
  Count(held_);
  held_ = 0;
}

void FramePasses::Transform() {
  fftwf_execute(plan_);
  for (int i = 0; i < held_ * kSpectrum; ++i) {
    const float power = spectra_[i][0] * spectra_[i][0] + spectra_[i][1] * spectra_[i][1];
    levels_[i] = std::max(power, 1.0F);
  }
  for (int i = 0; i < held_ * kSpectrum; ++i) levels_[i] = 10.0F * std::log10(levels_[i]);
}

void FramePasses::Count(int frames) {
  for (int row = 0; row < frames * kFrame; ++row) {
    const float* level = levels_ + std::int64_t{row} * kRowStride;
    float sum = 0, squares = 0;
    for (int x = 0; x < kHalfColumns; ++x) {
      sum += level[x];
      squares += level[x] * level[x];
    }
    const float first = level[0], last = level[kHalfColumns - 1];
    outcome_.sum_db += 2.0 * sum - first - last;
    outcome_.squares_db += 2.0 * squares - first * first - last * last;
  }
  const auto bin = [](float level) { return static_cast<std::size_t>(level * 4.0F); };
  for (int row = 0; row < frames * kFrame; ++row) {
    const float* level = levels_ + std::int64_t{row} * kRowStride;
    ++outcome_.counts[bin(level[0])];
    for (int x = 1; x + 1 < kHalfColumns; ++x) outcome_.counts[bin(level[x])] += 2;
    ++outcome_.counts[bin(level[kHalfColumns - 1])];
  }
  outcome_.frames += frames;
}

void Outcome::Add(const Outcome& other) {
  frames += other.frames;
  sum_db += other.sum_db;
  squares_db += other.squares_db;
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += other.counts[i];
  copied_bytes += other.copied_bytes;
}

}  // namespace patchbay::bench
