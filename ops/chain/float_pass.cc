#include "ops/chain/float_pass.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/chain/carver.h"
#include "ops/chain/chain_rows.h"
#include "ops/chain/chain_stage.h"

namespace patchbay::ops {
namespace {

constexpr std::int64_t kSlack = 64;  ///< elements a whole vector may reach past the end of a row

/// Whole pixels of one byte: a finished row is a run of the source, forwards, backwards or down a
/// column.
void MoveLabels(const Strided& source, const WindowMap& window, std::uint8_t* out) {
  const std::int64_t width = window.out_width;
  const auto at = [&](std::int64_t i, std::int64_t j) {
    const PixelPlace place = SourceOf(window, i, j);
    return reinterpret_cast<const std::uint8_t*>(source.At(place.y, place.x, 0));
  };
  for (std::int64_t i = 0; i < window.out_height; ++i, out += width) {
    const std::uint8_t* first = at(i, 0);
    const std::ptrdiff_t step = width > 1 ? at(i, 1) - first : 1;
    if (step == 1) {
      std::memcpy(out, first, static_cast<std::size_t>(width));
    } else {
      for (std::int64_t j = 0; j < width; ++j) out[j] = first[j * step];
    }
  }
}

/// Finished rows as places of the source: what the image and its labels share.
class RowPlaces {
 public:
  RowPlaces(const RowLoops& loops, const Strided& source, const PatchGeometry& geometry,
            std::int64_t width)
      : loops_(loops), geometry_(geometry), stride_(RoundedUp(width, kNoiseGroup)) {
    job_.source = &source;
    job_.geometry = &geometry;
  }

  std::int64_t stride() const { return stride_; }
  void Reserve(Carver& carver) {
    for (std::size_t& at : at_) at = carver.Take((stride_ + kSlack) * 4);
  }
  void Begin(const Carver& carver) {
    job_.at_y = carver.Floats(at_[0]);
    job_.at_x = carver.Floats(at_[1]);
    dy_ = carver.Floats(at_[2]);
    dx_ = carver.Floats(at_[3]);
    if (geometry_.elastic.points == 0) return;
    for (std::size_t k = 0; k < 4; ++k) columns_.weight[k] = carver.Floats(at_[4 + k]);
    loops_.spline_columns(stride_, geometry_.inverse_spacing_x, geometry_.elastic.points, columns_);
    job_.dy = dy_;
    job_.dx = dx_;
  }
  const GatherJob& At(std::int64_t row, DType dtype) {
    job_.row = row;
    job_.dtype = dtype;
    if (job_.dy != nullptr) {
      loops_.displace(geometry_, geometry_.elastic.dy, columns_, row, dy_);
      loops_.displace(geometry_, geometry_.elastic.dx, columns_, row, dx_);
    }
    return job_;
  }

 private:
  const RowLoops& loops_;
  const PatchGeometry& geometry_;
  std::int64_t stride_;
  std::size_t at_[8] = {};
  float *dy_ = nullptr, *dx_ = nullptr;
  SplineColumns columns_;
  GatherJob job_;
};

}  // namespace

void BlurRow(const RowLoops& loops, const PatchBlur& blur, std::int64_t width, float* row,
             float* padded) {
  std::array<const float*, 2 * kMaxBlurRadius + 1> tap;
  for (std::size_t k = 0; k < tap.size(); ++k) tap[k] = padded + k;
  for (std::int64_t j = 0; j < blur.radius; ++j) {
    padded[j] = row[MirroredPlace(j - blur.radius, width)];
    padded[blur.radius + width + j] = row[MirroredPlace(width + j, width)];
  }
  std::memcpy(padded + blur.radius, row, static_cast<std::size_t>(width) * 4);
  loops.weigh(blur.weight.data(), tap.data(), 2 * blur.radius + 1, width, row);
}

namespace {

class FloatPass {
 public:
  FloatPass(const RowLoops& loops, const FloatPassJob& job, std::vector<std::byte>& scratch)
      : loops_(loops),
        job_(job),
        places_(loops, *job.source, *job.geometry, job.width),
        carver_(scratch),
        stride_(places_.stride()),
        channels_(static_cast<int>(job.source->channels)) {
    before_mean_ = job.colour->StepsBeforeMean();
    Reserve();
  }

  void Run() {
    for (std::int64_t i = 0; i < job_.height; ++i) {
      const FloatRows rows = InPlanes() ? PlaneRow(i) : rows_;
      MakeRow(i, rows);
      if (!InPlanes()) Finish(i, rows);
    }
    if (!InPlanes()) return;
    if (NeedsMean()) TurnContrast();
    if (job_.colour->blur.radius == 0) {
      for (std::int64_t i = 0; i < job_.height; ++i) Finish(i, PlaneRow(i));
      return;
    }
    for (std::int64_t i = 0; i < job_.height; ++i) BlurAlong(PlaneRow(i));
    for (std::int64_t i = 0; i < job_.height; ++i) {
      BlurAcross(i);
      Finish(i, rows_);
    }
  }

 private:
  bool NeedsMean() const { return before_mean_ < kColorSteps; }
  bool InPlanes() const { return NeedsMean() || job_.colour->blur.radius != 0; }
  FloatRows PlaneRow(std::int64_t i) const {
    FloatRows rows = rows_;
    rows.value = planes_ + i * channels_ * stride_;
    return rows;
  }

  void Reserve() {
    stage_row_ = RoundedUp(job_.width * channels_ + kStageSlack, 64);
    places_.Reserve(carver_);
    const std::size_t rows = carver_.Take((channels_ * stride_ + kSlack) * 4);
    const std::size_t room = carver_.Take((channels_ * stride_ + kSlack) * 4);
    const std::size_t stage = carver_.Take(stage_row_ * kStageRows);
    const std::size_t bytes = carver_.Take(channels_ * stride_ + kSlack);
    const std::size_t padded = carver_.Take((stride_ + 2 * kMaxBlurRadius + kSlack) * 4);
    const std::int64_t plane_rows = InPlanes() ? job_.height : 0;
    const std::size_t planes = carver_.Take((plane_rows * channels_ * stride_ + kSlack) * 4);
    carver_.Fit();
    places_.Begin(carver_);
    rows_ = {carver_.Floats(rows), stride_, job_.width, channels_};
    room_ = carver_.Bytes(room);
    stage_ = reinterpret_cast<std::uint8_t*>(carver_.Bytes(stage));
    bytes_ = reinterpret_cast<std::uint8_t*>(carver_.Bytes(bytes));
    padded_ = carver_.Floats(padded);
    planes_ = carver_.Floats(planes);
  }

  /// From the source to where a pass over the patch comes between, or to the end of the colours.
  void MakeRow(std::int64_t i, const FloatRows& rows) {
    if (job_.geometry->whole_pixels) {
      MoveRow(i, rows);
    } else {
      const GatherJob& gather = places_.At(i, job_.dtype);
      if (FitsRgbGather(*job_.source, job_.dtype)) {
        loops_.gather_rgb(gather, rows);
      } else {
        loops_.places(gather, stride_);
        GatherAny(gather, rows);
      }
    }
    const PatchColour& colour = *job_.colour;
    if (colour.icc != nullptr) {
      colour.icc->Apply(rows.Row(0), rows.Row(1), rows.Row(2), rows.width);
    }
    if (colour.lab) loops_.map_lab(*colour.lab, rows);
    if (colour.od) loops_.map_od(*colour.od, rows);
    if (colour.jitter) Jitter(0, before_mean_, 0, rows);
  }

  void MoveRow(std::int64_t i, const FloatRows& rows) {
    const WindowMap& window = job_.geometry->window;
    if (job_.dtype != DType::kUint8) return CopyPixels(*job_.source, job_.dtype, window, i, rows);
    const RowInSource found = FindRow(*job_.source, window, i);
    const bool in_place = found.row != nullptr && !found.mirrored;
    if (!in_place && i % kStageRows == 0) {
      StageRows(*job_.source, window, i, std::min(kStageRows, job_.height - i), stage_, stage_row_);
    }
    const std::uint8_t* row = in_place ? found.row : stage_ + i % kStageRows * stage_row_;
    std::int64_t made = 0;
    if (channels_ == 3) {
      RowJob split;
      split.row = row;
      split.width = job_.width;
      split.out = reinterpret_cast<std::byte*>(bytes_);
      split.plane_bytes = stride_;
      made = SplitRowAvx2(split);
    }
    for (int c = 0; c < channels_; ++c) {
      for (std::int64_t j = made; j < job_.width; ++j) {
        bytes_[c * stride_ + j] = row[j * channels_ + c];
      }
    }
    loops_.widen(bytes_, rows);
  }

  void Jitter(int first, int last, float mean, const FloatRows& rows) const {
    loops_.jitter(*job_.colour->jitter, first, last, mean, White(), rows);
  }
  float White() const { return static_cast<float>(job_.program->white()); }

  /// The mean grey of the patch as it is before the contrast, then the rest of the jitter.
  void TurnContrast() const {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < job_.height; ++i) sum += loops_.grey_sum(PlaneRow(i), White());
    const auto pixels = static_cast<double>(job_.height * job_.width);
    const auto mean = static_cast<float>(static_cast<double>(sum) / (65'536 * pixels));
    for (std::int64_t i = 0; i < job_.height; ++i) {
      Jitter(before_mean_, kColorSteps, mean, PlaneRow(i));
    }
  }

  void BlurAlong(const FloatRows& rows) const {
    for (int c = 0; c < channels_; ++c) {
      BlurRow(loops_, job_.colour->blur, job_.width, rows.Row(c), padded_);
    }
  }

  void BlurAcross(std::int64_t i) const {
    const PatchBlur& blur = job_.colour->blur;
    std::array<const float*, 2 * kMaxBlurRadius + 1> tap;
    for (int c = 0; c < channels_; ++c) {
      for (std::int64_t k = 0; k <= 2 * blur.radius; ++k) {
        const std::int64_t at = MirroredPlace(i + k - blur.radius, job_.height);
        tap[static_cast<std::size_t>(k)] = PlaneRow(at).Row(c);
      }
      loops_.weigh(blur.weight.data(), tap.data(), 2 * blur.radius + 1, job_.width, rows_.Row(c));
    }
  }

  void Finish(std::int64_t i, const FloatRows& rows) const {
    const PatchNoise& noise = job_.colour->noise;
    if (noise.std > 0) loops_.add_noise(noise, job_.rows_before + i, rows);
    const ColourProgram& program = *job_.program;
    if (!program.slopes().empty()) {
      loops_.scale(program.slopes().data(), program.offsets().data(), rows);
    }
    for (const CastTo to : program.casts()) {
      for (int c = 0; c < channels_; ++c) {
        float* row = rows.Row(c);
        for (std::int64_t j = 0; j < rows.width; ++j) row[j] = CastValue(CastBits(row[j], to), to);
      }
    }
    RowTarget target = job_.target;
    target.out += i * job_.target_row_bytes;
    target.room = room_;
    loops_.store(rows, target);
  }

  const RowLoops& loops_;
  const FloatPassJob& job_;
  RowPlaces places_;
  Carver carver_;
  const std::int64_t stride_;
  const int channels_;
  int before_mean_ = kColorSteps;  ///< steps of the jitter before the first that needs the mean
  std::int64_t stage_row_ = 0;
  FloatRows rows_;
  std::byte* room_ = nullptr;
  std::uint8_t *stage_ = nullptr, *bytes_ = nullptr;
  float *padded_ = nullptr, *planes_ = nullptr;
};

}  // namespace

void RunFloatPass(const RowLoops& loops, const FloatPassJob& job, std::vector<std::byte>& scratch) {
  FloatPass(loops, job, scratch).Run();
  RowMaker::FinishStreaming();
}

void RunNearestPass(const RowLoops& loops, const Strided& source, const PatchGeometry& geometry,
                    std::uint8_t* out, std::vector<std::byte>& scratch) {
  const WindowMap& window = geometry.window;
  const std::int64_t width = window.out_width;
  if (geometry.whole_pixels) return MoveLabels(source, window, out);
  RowPlaces places(loops, source, geometry, width);
  Carver carver(scratch);
  places.Reserve(carver);
  carver.Fit();
  places.Begin(carver);
  for (std::int64_t i = 0; i < window.out_height; ++i, out += width) {
    const GatherJob& job = places.At(i, DType::kUint8);
    loops.places(job, places.stride());
    GatherNearest(job, width, out);
  }
}

}  // namespace patchbay::ops
