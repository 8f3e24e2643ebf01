#include "ops/chain/volume_pass.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/chain/chain_rows.h"
#include "ops/chain/float_pass.h"
#include "ops/chain/scalar_lanes.h"
#include "ops/chain/volume_gather.h"
#include "ops/geometry/resample.h"

namespace patchbay::ops {
namespace {

class VolumePass {
 public:
  VolumePass(const RowLoops& loops, const VolumePassJob& job, std::vector<std::byte>& scratch)
      : loops_(loops),
        job_(job),
        gather_(loops, job.source, *job.geometry, job.patch),
        carver_(scratch),
        stride_(RoundedUp(job.patch.x, 16)) {
    Reserve();
  }

  void Run() {
    for (std::int64_t i = 0; i < Rows(); ++i) {
      MakeRow(i);
      if (!InScratch()) {
        Finish(i, row_);
      } else {
        std::memcpy(Row(i), row_, static_cast<std::size_t>(job_.patch.x) * 4);
      }
    }
    if (!InScratch()) return;
    Blur();
    Contrast();
    LowerResolution();
    for (const DrawnGamma& gamma : job_.intensity->gammas) Gamma(gamma);
    for (std::int64_t i = 0; i < Rows(); ++i) Finish(i, Row(i));
  }

 private:
  std::int64_t Rows() const { return job_.patch.z * job_.patch.y; }
  float* Row(std::int64_t i) const { return planes_ + i * stride_; }
  bool IsCoarse() const { return job_.intensity->coarse != job_.patch; }
  bool InScratch() const {
    const VolumeIntensity& drawn = *job_.intensity;
    return drawn.blur.radius > 0 || drawn.contrast != 1 || IsCoarse() || !drawn.gammas.empty();
  }

  void Reserve() {
    const Extent& patch = job_.patch;
    const std::int64_t wide = RoundedUp(patch.x, kNoiseGroup) + kVectorSlack;
    const std::int64_t longest = std::max({patch.z, patch.y, patch.x});
    gather_.Reserve(carver_);
    const std::size_t row = carver_.Take(wide * 4), room = carver_.Take(wide * 4);
    const std::size_t padded = carver_.Take((patch.x + 2 * kMaxBlurRadius + kVectorSlack) * 4);
    const bool blurs = job_.intensity->blur.radius > 0;
    const std::size_t lines = carver_.Take((blurs ? longest * stride_ : 0) * 4 + kVectorSlack);
    const std::size_t planes =
        carver_.Take(((InScratch() ? Rows() * stride_ : 0) + kVectorSlack) * 4);
    std::size_t packed[2] = {};
    for (std::size_t& at : packed) at = carver_.Take((IsCoarse() ? patch.Pixels() : 0) * 4);
    carver_.Fit();
    gather_.Begin(carver_);
    row_ = carver_.Floats(row);
    room_ = carver_.Bytes(room);
    padded_ = carver_.Floats(padded);
    lines_ = carver_.Floats(lines);
    planes_ = carver_.Floats(planes);
    for (int k = 0; k < 2; ++k) packed_[k] = carver_.Floats(packed[k]);
  }

  /// From the source to brightness. The blur that comes between is linear: brightness may come
  /// first.
  void MakeRow(std::int64_t i) {
    const VolumeIntensity& drawn = *job_.intensity;
    gather_.Values(i / job_.patch.y, i % job_.patch.y, row_);
    loops_.tone(drawn.tone, job_.patch.x, row_);
    if (drawn.noise.std > 0) {
      const FloatRows rows{row_, RoundedUp(job_.patch.x, kNoiseGroup), job_.patch.x, 1};
      loops_.add_noise(drawn.noise, i, rows);
    }
    if (drawn.brightness == 1) return;
    loops_.line(FreeLine(drawn.brightness, 0), job_.patch.x, row_);
  }

  void Blur() const {
    const PatchBlur& blur = job_.intensity->blur;
    const Extent& patch = job_.patch;
    if (blur.radius == 0) return;
    for (std::int64_t z = 0; z < patch.z; ++z) {
      for (std::int64_t y = 0; y < patch.y; ++y) {
        if (patch.x > 1) BlurRow(loops_, blur, patch.x, Row(z * patch.y + y), padded_);
      }
      BlurAcross(z * patch.y, 1, patch.y);
    }
    for (std::int64_t y = 0; y < patch.y; ++y) BlurAcross(y, patch.y, patch.z);
  }

  /// `count` rows from row `first` on, `step` rows apart, as the samples of an axis.
  void BlurAcross(std::int64_t first, std::int64_t step, std::int64_t count) const {
    const PatchBlur& blur = job_.intensity->blur;
    if (count == 1) return;
    std::array<const float*, 2 * kMaxBlurRadius + 1> tap;
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t k = 0; k <= 2 * blur.radius; ++k) {
        tap[static_cast<std::size_t>(k)] =
            Row(first + MirroredPlace(i + k - blur.radius, count) * step);
      }
      loops_.weigh(blur.weight.data(), tap.data(), 2 * blur.radius + 1, job_.patch.x,
                   lines_ + i * stride_);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(Row(first + i * step), lines_ + i * stride_,
                  static_cast<std::size_t>(job_.patch.x) * 4);
    }
  }

  PatchStats Stats() const {
    const float shift = *Row(0);
    PatchSums patch;
    for (std::int64_t z = 0; z < job_.patch.z; ++z) {
      const PatchSums slice = SliceSums(z * job_.patch.y, shift);
      if (z == 0) {
        patch = slice;
      } else {
        Join(patch, slice);
      }
    }
    return StatsOf<PlainProduct>(patch, shift, static_cast<double>(job_.patch.Pixels()));
  }

  PatchSums SliceSums(std::int64_t first_row, float shift) const {
    PatchSums slice = loops_.sums(Row(first_row), job_.patch.x, shift);
    for (std::int64_t y = 1; y < job_.patch.y; ++y) {
      Join(slice, loops_.sums(Row(first_row + y), job_.patch.x, shift));
    }
    return slice;
  }

  void Line(const LineWithin& line) const {
    for (std::int64_t i = 0; i < Rows(); ++i) loops_.line(line, job_.patch.x, Row(i));
  }

  void Contrast() const {
    const float factor = job_.intensity->contrast;
    if (factor != 1) Line(ContrastLine(Stats(), factor));
  }

  /// Down to the nearest voxel, up again between voxels.
  void LowerResolution() const {
    if (!IsCoarse()) return;
    const Extent& coarse = job_.intensity->coarse;
    const auto width = static_cast<std::size_t>(job_.patch.x);
    for (std::int64_t i = 0; i < Rows(); ++i) {
      std::memcpy(packed_[0] + i * job_.patch.x, Row(i), width * 4);
    }
    Resampled(*Resample::Make(job_.patch, coarse, 0));
    Resampled(*Resample::Make(coarse, job_.patch, 1));
    for (std::int64_t i = 0; i < Rows(); ++i) {
      std::memcpy(Row(i), packed_[0] + i * job_.patch.x, width * 4);
    }
  }

  void Resampled(const Resample& resample) const {
    resample.Planes(packed_[0], 0, resample.from().z, packed_[1]);
    resample.Rows(packed_[1], 0, resample.to().y, packed_[0]);
  }

  void Gamma(const DrawnGamma& gamma) const {
    if (gamma.invert) Line(FreeLine(-1, 0));
    const PatchStats before = Stats();
    const PowerCurve curve = CurveOf(before, static_cast<float>(gamma.exponent));
    for (std::int64_t i = 0; i < Rows(); ++i) loops_.power(curve, job_.patch.x, Row(i));
    if (gamma.retain_stats) {
      Line(RetainingLine<PlainProduct>(before, Stats(), gamma.invert ? -1.0f : 1.0f));
    } else if (gamma.invert) {
      Line(FreeLine(-1, 0));
    }
  }

  void Finish(std::int64_t i, float* row) const {
    for (const CastTo to : job_.program->casts()) {
      for (std::int64_t j = 0; j < job_.patch.x; ++j) {
        row[j] = CastValue(CastBits(row[j], to), to);
      }
    }
    RowTarget target;
    target.out = job_.out + i * job_.patch.x * ElementBytes(job_.to);
    target.to = job_.to;
    target.room = room_;
    loops_.store({row, stride_, job_.patch.x, 1}, target);
  }

  const RowLoops& loops_;
  const VolumePassJob& job_;
  VolumeGather gather_;
  Carver carver_;
  const std::int64_t stride_;  ///< floats from one row of the scratch to the next
  float *row_ = nullptr, *padded_ = nullptr, *lines_ = nullptr, *planes_ = nullptr;
  float* packed_[2] = {};
  std::byte* room_ = nullptr;
};

}  // namespace

void RunVolumePass(const RowLoops& loops, const VolumePassJob& job,
                   std::vector<std::byte>& scratch) {
  VolumePass(loops, job, scratch).Run();
  RowMaker::FinishStreaming();
}

void RunVolumeLabels(const RowLoops& loops, const ConstTensorView& labels,
                     const VolumeGeometry& geometry, const Extent& patch, std::uint8_t* out,
                     std::vector<std::byte>& scratch) {
  VolumeGeometry nearest = geometry;
  for (double& sigma : nearest.smooth) sigma = 0;
  VolumeGather gather(loops, labels, nearest, patch);
  Carver carver(scratch);
  gather.Reserve(carver);
  carver.Fit();
  gather.Begin(carver);
  for (std::int64_t z = 0; z < patch.z; ++z) {
    for (std::int64_t y = 0; y < patch.y; ++y, out += patch.x) gather.Nearest(z, y, out);
  }
}

}  // namespace patchbay::ops
