// The passes of spectral on a GPU, run by the CPU: every thread of a block one after another
// between two barriers. The code and the arithmetic are the kernels'.
#pragma once

#include <memory>
#include <vector>

#include "ops/spectral/spectral_batches.h"
#include "ops/spectral/spectral_columns_pass.h"
#include "ops/spectral/spectral_rows_pass.h"

namespace patchbay::ops {

/// A block of threads that run in turns, in an order that must not matter: between two barriers no
/// thread may read or write another's data.
template <typename State>
class LoopBlock {
 public:
  /// The i-th thread to run is i * stride modulo the number of threads; `stride` is odd.
  explicit LoopBlock(int stride) : stride_(stride), states_(spectral_passes::kPassThreads) {}

  template <typename F>
  void Phase(const F& run) {
    for (int i = 0; i < spectral_passes::kPassThreads; ++i) {
      const int t = i * stride_ % spectral_passes::kPassThreads;
      run(t, states_[static_cast<std::size_t>(t)]);
    }
  }
  template <typename Counter>
  void Add(Counter* counter, Counter value) {
    *counter += value;
  }

 private:
  int stride_;
  std::vector<State> states_;
};

/// SpectralFrames as a GPU would count them.
class EmulatedSpectralFrames : public SpectralFrames {
 public:
  /// `blocks`: how many share the columns of a tile. The sums must not depend on it.
  explicit EmulatedSpectralFrames(const plan::SpectralOptions& options, int blocks = 2,
                                  int stride = 1)
      : options_(options),
        blocks_(blocks),
        stride_(stride),
        tables_(std::make_unique<SpectralTables>(options)) {}

  Status Add(const SpectralPlane& plane, const FrameRange& frames,
             std::span<const std::uint8_t> wanted, SpectralSums& sums) override {
    return AddPixels(plane, 1, -1, frames, wanted, sums);
  }
  Status AddRgb(const SpectralPlane& rgb, const FrameRange& frames,
                std::span<const std::uint8_t> wanted, std::span<SpectralSums> sums) override {
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const int component = sums.size() == 1 ? -1 : static_cast<int>(c);
      PB_RETURN_IF_ERROR(AddPixels(rgb, 3, component, frames, wanted, sums[c]));
    }
    return absl::OkStatus();
  }

 private:
  Status AddPixels(const SpectralPlane& plane, int pixel_bytes, int component,
                   const FrameRange& frames, std::span<const std::uint8_t> wanted,
                   SpectralSums& sums) {
    PB_RETURN_IF_ERROR(CheckSpectralBlock(options_, plane, pixel_bytes, frames, wanted));
    for (const FrameRange& part : SplitFrames(frames, options_)) {
      const SpectralBatch batch = MakeBatch(part, frames, wanted, plane, options_);
      if (batch.wanted.empty()) continue;
      // Only what a GPU is sent: a pixel beside it would be read outside of this copy.
      std::vector<std::uint8_t> pixels;
      for (std::int64_t y = 0; y < batch.height; ++y) {
        const std::uint8_t* row = plane.pixels + (batch.top + y - plane.top) * plane.row_bytes +
                                  (batch.left - plane.left) * pixel_bytes;
        pixels.insert(pixels.end(), row, row + batch.width * pixel_bytes);
      }
      const spectral_passes::PassPixels from = {
          pixels.data(),      batch.width * pixel_bytes, batch.top,   batch.left,
          plane.image_height, plane.image_width,         pixel_bytes, component};
      CountBatch(batch, from, sums);
    }
    return absl::OkStatus();
  }

  void CountBatch(const SpectralBatch& batch, const spectral_passes::PassPixels& from,
                  SpectralSums& sums) {
    using namespace spectral_passes;  // NOLINT
    const auto places = static_cast<std::size_t>(batch.rows * batch.columns);
    std::vector<ComplexFloat> spectra(places * kGpuHalf);
    std::vector<RowSum> row_sums(places);
    GpuTally tally{};
    std::vector<std::uint64_t> q(sums.coefficient_q.size()), qq(sums.coefficient_qq.size());
    const PassMemory memory = {tables_->twiddle,
                               tables_->window,
                               &tables_->rings,
                               batch.wanted.data(),
                               batch.strips.data(),
                               spectra.data(),
                               row_sums.data(),
                               &tally,
                               q.data(),
                               qq.data()};
    const RowsPass rows = RowsPassOf(batch, options_, from, memory);
    if (options_.prefilter == plan::SpectralPrefilter::kGauss7) {
      RunRows<true>(rows, batch.strips);
    } else {
      RunRows<false>(rows, batch.strips);
    }
    const ColumnsPass columns = ColumnsPassOf(batch, options_, memory);
    for (int tile = 0; tile < kTiles; ++tile) {
      for (int block = 0; block < blocks_; ++block) {
        if (options_.coefficients) {
          RunColumns<true>(columns, tile, block);
        } else {
          RunColumns<false>(columns, tile, block);
        }
      }
    }
    AddTally(tally, batch.wanted.size(), q, qq, sums);
  }

  template <bool gauss7>
  void RunRows(const spectral_passes::RowsPass& pass, const std::vector<std::uint32_t>& strips) {
    LoopBlock<spectral_passes::RowsState> block(stride_);
    const auto sm = std::make_unique<spectral_passes::RowsShared<gauss7>>();
    spectral_passes::PrepareRows<gauss7>(block, pass, *sm);
    for (const std::uint32_t strip : strips) {
      spectral_passes::MakeStrip<gauss7>(block, pass, strip, *sm);
    }
  }

  template <bool coefficients>
  void RunColumns(const spectral_passes::ColumnsPass& pass, int tile, int first) {
    LoopBlock<spectral_passes::ColumnsState<coefficients>> block(stride_);
    const auto sm = std::make_unique<spectral_passes::ColumnsShared>();
    spectral_passes::CountColumns<coefficients>(block, pass, tile, first, blocks_, *sm);
  }

  plan::SpectralOptions options_;
  int blocks_, stride_;
  std::unique_ptr<SpectralTables> tables_;
};

}  // namespace patchbay::ops
