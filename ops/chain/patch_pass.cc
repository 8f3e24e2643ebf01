#include "ops/chain/patch_pass.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/chain/chain_rows.h"
#include "ops/chain/scalar_lanes.h"
#include "ops/chain/step_lists.h"
#include "ops/geometry/resample.h"

namespace patchbay::ops {
namespace {

class PatchPass {
 public:
  PatchPass(const RowLoops& loops, RowGather& gather, std::span<const PatchStep> steps,
            const PatchTarget& target, std::vector<std::byte>& scratch)
      : loops_(loops),
        gather_(gather),
        steps_(steps),
        target_(target),
        patch_(target.patch),
        channels_(target.channels),
        stride_(RoundedUp(target.patch.x, kRowAlign)),
        row_bytes_(patch_.x * ElementBytes(target.to) * (target.planar ? 1 : channels_)),
        arena_(scratch) {
    Reserve();
  }

  void Run() {
    SetStretch(0);
    const bool keeps = !IsLast();
    for (std::int64_t i = 0; i < Rows(); ++i) {
      const FloatRows rows = keeps ? PlaneRow(i) : row_;
      gather_.Values(i / patch_.y, i % patch_.y, rows);
      Emit(i, rows);
    }
    while (!IsLast()) {
      const WholeStep& whole = std::get<WholeStep>(steps_[end_]);
      SetStretch(end_ + 1);
      std::visit([this](const auto& step) { ApplyToPatch(step); }, whole.step);
    }
  }

 private:
  std::int64_t Rows() const { return patch_.z * patch_.y; }
  FloatRows PlaneRow(std::int64_t i) const { return RowIn(planes_, i); }
  FloatRows RowIn(float* block, std::int64_t i) const {
    return {block + i * channels_ * stride_, stride_, patch_.x, channels_};
  }

  /// The point-wise steps from `begin` on come next.
  void SetStretch(std::size_t begin) {
    begin_ = end_ = begin;
    while (end_ < steps_.size() && std::holds_alternative<AnyPointStep>(steps_[end_])) ++end_;
  }
  bool IsLast() const { return end_ == steps_.size(); }

  /// Applies the current stretch to a row that the step before has finished, and stores it into the
  /// slot if the stretch is the last.
  void Emit(std::int64_t i, const FloatRows& rows) const {
    for (const PatchStep& step : steps_.subspan(begin_, end_ - begin_)) {
      ApplyToRow(loops_, std::get<AnyPointStep>(step), i, rows);
    }
    if (!IsLast()) return;
    RowTarget target;
    target.out = target_.out + i * row_bytes_;
    target.channel_bytes = ElementBytes(target_.to) * (target_.planar ? patch_.Pixels() : 1);
    target.planar = target_.planar;
    target.to = target_.to;
    target.room = room_;
    loops_.store(rows, target);
  }
  void EmitAll() const {
    for (std::int64_t i = 0; i < Rows(); ++i) Emit(i, PlaneRow(i));
  }

  const WholeStep* LastWhole() const {
    const WholeStep* last = nullptr;
    for (const PatchStep& step : steps_) {
      if (const auto* whole = std::get_if<WholeStep>(&step)) last = whole;
    }
    return last;
  }

  void Reserve() {
    const auto has = [this](auto&& is) {
      return std::any_of(steps_.begin(), steps_.end(), [&is](const PatchStep& step) {
        const auto* whole = std::get_if<WholeStep>(&step);
        return whole != nullptr && is(*whole);
      });
    };
    const bool keeps = has([](const WholeStep&) { return true; });
    // The last blur of a slice is passed on directly: no line of it is kept.
    const bool keeps_lines = has([&](const WholeStep& s) {
      return std::holds_alternative<BlurStep>(s.step) && (patch_.z > 1 || &s != LastWhole());
    });
    const bool coarse =
        has([](const WholeStep& s) { return std::holds_alternative<CoarseStep>(s.step); });
    const std::int64_t row_floats = channels_ * stride_;
    gather_.Reserve(arena_);
    const std::size_t row = arena_.Take((row_floats + kVectorSlack) * 4);
    const std::size_t room = arena_.Take((row_floats + kVectorSlack) * 4);
    const std::size_t padded = arena_.Take((stride_ + 2 * kMaxBlurRadius + kVectorSlack) * 4);
    const std::int64_t line_rows = keeps_lines ? std::max(patch_.z, patch_.y) : 0;
    const std::size_t lines = arena_.Take((line_rows * row_floats + kVectorSlack) * 4);
    const std::size_t planes = arena_.Take(((keeps ? Rows() : 0) * row_floats + kVectorSlack) * 4);
    std::size_t packed[2] = {};
    for (std::size_t& at : packed) at = arena_.Take((coarse ? patch_.Pixels() : 0) * 4);
    arena_.Fit();
    gather_.Begin(arena_);
    row_ = RowIn(arena_.Floats(row), 0);
    room_ = arena_.Bytes(room);
    padded_ = arena_.Floats(padded);
    lines_ = arena_.Floats(lines);
    planes_ = arena_.Floats(planes);
    for (int k = 0; k < 2; ++k) packed_[k] = arena_.Floats(packed[k]);
  }

  /// Blurs along x, y, then z. The last of y and z is stored directly if the slot follows.
  void ApplyToPatch(const BlurStep& step) const {
    const bool streams = IsLast() && (step.along[0] || step.along[1]);
    for (std::int64_t first = 0; first < Rows(); first += patch_.y) {
      for (std::int64_t i = first; step.along[2] && i < first + patch_.y; ++i) {
        for (int c = 0; c < channels_; ++c) {
          BlurRow(loops_, step.blur, patch_.x, PlaneRow(i).Row(c), padded_);
        }
      }
      if (step.along[1]) BlurAcross(step.blur, first, 1, patch_.y, streams && !step.along[0]);
    }
    for (std::int64_t y = 0; step.along[0] && y < patch_.y; ++y) {
      BlurAcross(step.blur, y, patch_.y, patch_.z, streams);
    }
    if (!streams) EmitAll();
  }

  /// `count` rows from row `first` on, `step` rows apart, as the samples of an axis.
  void BlurAcross(const PatchBlur& blur, std::int64_t first, std::int64_t step, std::int64_t count,
                  bool streams) const {
    std::array<const float*, 2 * kMaxBlurRadius + 1> tap;
    for (std::int64_t i = 0; i < count; ++i) {
      const FloatRows rows = streams ? row_ : RowIn(lines_, i);
      for (int c = 0; c < channels_; ++c) {
        for (std::int64_t k = 0; k <= 2 * blur.radius; ++k) {
          const std::int64_t at = MirroredPlace(i + k - blur.radius, count);
          tap[static_cast<std::size_t>(k)] = PlaneRow(first + at * step).Row(c);
        }
        loops_.weigh(blur.weight.data(), tap.data(), 2 * blur.radius + 1, patch_.x, rows.Row(c));
      }
      if (streams) Emit(first + i * step, rows);
    }
    for (std::int64_t i = 0; !streams && i < count; ++i) {
      std::memcpy(PlaneRow(first + i * step).value, RowIn(lines_, i).value,
                  static_cast<std::size_t>(channels_ * stride_) * 4);
    }
  }

  /// The statistics of one channel: the rows of a slice are added up, then the slices.
  PatchStats Stats(int c) const {
    const float shift = *PlaneRow(0).Row(c);
    PatchSums patch;
    for (std::int64_t first = 0; first < Rows(); first += patch_.y) {
      PatchSums slice = loops_.sums(PlaneRow(first).Row(c), patch_.x, shift);
      for (std::int64_t i = first + 1; i < first + patch_.y; ++i) {
        Join(slice, loops_.sums(PlaneRow(i).Row(c), patch_.x, shift));
      }
      if (first == 0) {
        patch = slice;
      } else {
        Join(patch, slice);
      }
    }
    return StatsOf<PlainProduct>(patch, shift, static_cast<double>(patch_.Pixels()));
  }

  /// A step over one channel.
  void ApplyToChannel(const AnyPointStep& step, int c) const {
    for (std::int64_t i = 0; i < Rows(); ++i) {
      ApplyToRow(loops_, step, i, PlaneRow(i).Channel(c));
    }
  }
  /// A line for each channel, then the stretch.
  void EmitLines(const std::vector<LineWithin>& lines) const {
    for (std::int64_t i = 0; i < Rows(); ++i) {
      const FloatRows rows = PlaneRow(i);
      for (int c = 0; c < channels_; ++c) {
        const AnyPointStep line = PointStepOf(lines[static_cast<std::size_t>(c)]);
        ApplyToRow(loops_, line, i, rows.Channel(c));
      }
      Emit(i, rows);
    }
  }

  void ApplyToPatch(const CoarseStep& step) const {
    const Resample down = *Resample::Make(patch_, step.size, 0);
    const Resample up = *Resample::Make(step.size, patch_, 1);
    const auto width = static_cast<std::size_t>(patch_.x);
    for (int c = 0; c < channels_; ++c) {
      for (std::int64_t i = 0; i < Rows(); ++i) {
        std::memcpy(packed_[0] + i * patch_.x, PlaneRow(i).Row(c), width * 4);
      }
      for (const Resample* resample : {&down, &up}) {
        resample->Planes(packed_[0], 0, resample->from().z, packed_[1]);
        resample->Rows(packed_[1], 0, resample->to().y, packed_[0]);
      }
      for (std::int64_t i = 0; i < Rows(); ++i) {
        std::memcpy(PlaneRow(i).Row(c), packed_[0] + i * patch_.x, width * 4);
      }
    }
    EmitAll();
  }

  template <typename Reduction>
  void ApplyToPatch(const Reduction& step) const {
    constexpr WholeForm kForm = Reduction::kForm;
    if constexpr (kForm == WholeForm::kGrey) {
      ApplyAboutGrey(step);
    } else if constexpr (kForm == WholeForm::kLine) {
      std::vector<LineWithin> lines;
      for (int c = 0; c < channels_; ++c) lines.push_back(step.LineOf(Stats(c), c));
      EmitLines(lines);
    } else {
      ApplyCurve(step);
    }
  }

  /// The mean grey of each slice as it is before the step, then the step.
  template <typename Reduction>
  void ApplyAboutGrey(const Reduction& step) const {
    for (std::int64_t first = 0; first < Rows(); first += patch_.y) {
      std::uint64_t sum = 0;
      for (std::int64_t y = 0; y < patch_.y; ++y) {
        sum += loops_.grey_sum(PlaneRow(first + y), step.white());
      }
      const auto pixels = static_cast<double>(patch_.y * patch_.x);
      const AnyPointStep own = PointStepOf(
          step.AboutGrey(static_cast<float>(static_cast<double>(sum) / (65'536 * pixels))));
      for (std::int64_t i = first; i < first + patch_.y; ++i) {
        ApplyToRow(loops_, own, i, PlaneRow(i));
        Emit(i, PlaneRow(i));
      }
    }
  }

  template <typename Reduction>
  void ApplyCurve(const Reduction& step) const {
    std::vector<LineWithin> lines;
    for (int c = 0; c < channels_; ++c) {
      if (step.invert) ApplyToChannel(PointStepOf(FreeLine(-1, 0)), c);
      const PatchStats before = Stats(c);
      ApplyToChannel(PointStepOf(step.CurveOf(before, c)), c);
      if (step.retain_stats) {
        lines.push_back(step.template LineAfter<PlainProduct>(before, Stats(c)));
      } else if (step.invert) {
        lines.push_back(FreeLine(-1, 0));
      }
    }
    if (lines.empty()) return EmitAll();
    EmitLines(lines);
  }

  const RowLoops& loops_;
  RowGather& gather_;
  const std::span<const PatchStep> steps_;
  const PatchTarget& target_;
  const Extent patch_;
  const int channels_;
  const std::int64_t stride_, row_bytes_;
  Arena arena_;
  std::size_t begin_ = 0, end_ = 0;  ///< the stretch
  FloatRows row_;
  float *padded_ = nullptr, *lines_ = nullptr, *planes_ = nullptr;
  float* packed_[2] = {};
  std::byte* room_ = nullptr;
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

void RunPatch(const RowLoops& loops, RowGather& gather, std::span<const PatchStep> steps,
              const PatchTarget& target, std::vector<std::byte>& scratch) {
  PatchPass(loops, gather, steps, target, scratch).Run();
  RowMaker::FinishStreaming();
}

void RunNearest(RowGather& gather, const Extent& patch, std::uint8_t* out,
                std::vector<std::byte>& scratch) {
  Arena arena(scratch);
  gather.Reserve(arena);
  arena.Fit();
  gather.Begin(arena);
  for (std::int64_t z = 0; z < patch.z; ++z) {
    for (std::int64_t y = 0; y < patch.y; ++y, out += patch.x) gather.Nearest(z, y, out);
  }
}

}  // namespace patchbay::ops
