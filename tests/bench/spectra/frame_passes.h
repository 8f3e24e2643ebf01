// Frames to statistics as it is commonly done: a batch at a time, every step a pass over memory.
#pragma once

#include <cstdint>
#include <vector>

#include <fftw3.h>

#include "tests/bench/spectra/rivals.h"

namespace patchbay::bench {

/// A batch of frames, its spectra and its levels. One for each thread.
class FramePasses {
 public:
  static constexpr int kBatch = 4;  ///< frames; 1 to 8 take the same time here

  FramePasses();
  FramePasses(const FramePasses&) = delete;
  FramePasses& operator=(const FramePasses&) = delete;
  ~FramePasses();

  /// The next frame, from grey pixels in memory; runs the batch when it is full.
  void Add(const std::uint8_t* pixels, std::int64_t row_bytes);
  /// Runs what is left of the last batch.
  void Finish();
  const Outcome& outcome() const { return outcome_; }

 private:
  void Transform();
  void Count(int frames);

  float *frames_, *levels_;
  fftwf_complex* spectra_;
  fftwf_plan plan_;
  int held_ = 0;
  Outcome outcome_;
};

/// Plans are made one at a time, as FFTW asks.
fftwf_plan PlanFrames(int batch, float* frames, fftwf_complex* spectra);

}  // namespace patchbay::bench
