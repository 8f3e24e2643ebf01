#include "ops/spectral/spectral_frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/lanes/processor.h"
#include "ops/spectral/spectral_kernel.h"
#include "runtime/core/strings.h"

namespace patchbay::ops {
namespace {

Status RefusedPlane(const std::string& cause) {
  return InvalidArgument("count spectral frames: ", cause);
}

/// Whether [begin, end) frames lie in the image and their pixels within [first, first + size).
Status CheckPlaneSide(std::string_view side, const plan::SpectralOptions& options,
                      std::int64_t begin, std::int64_t end,
                      std::pair<std::int64_t, std::int64_t> held, std::int64_t image) {
  const auto [first, size] = held;
  if (first < 0 || size < 0 || first > image || size > image - first) {
    return RefusedPlane(StrCat(side, ": the plane reaches beyond the image"));
  }
  if (begin < 0 || begin > end || end > plan::FramesAlong(image, options)) {
    return RefusedPlane(
        StrCat(side, ": frames ", begin, " to ", end, " of ", plan::FramesAlong(image, options)));
  }
  if (begin == end) return absl::OkStatus();
  const std::int64_t halo = plan::SpectralHalo(options);
  const std::int64_t need_first = std::max<std::int64_t>(begin * options.hop - halo, 0);
  const std::int64_t need_end = std::min((end - 1) * options.hop + options.frame + halo, image);
  if (first > need_first || first + size < need_end) {
    return RefusedPlane(StrCat(side, ": the plane holds pixels ", first, " to ", first + size,
                               ", the frames need ", need_first, " to ", need_end));
  }
  return absl::OkStatus();
}

/// reflect101: ... 2 1 | 0 1 2 ... ; `size` is at least a frame, so one reflection is enough.
std::int64_t Reflected(std::int64_t at, std::int64_t size) {
  if (at < 0) return -at;
  return at < size ? at : 2 * (size - 1) - at;
}

SpectralKernel KernelAt(SpectralLevel level, int frame, bool hann) {
  if (level == SpectralLevel::kPlain) return PlainSpectralKernel(frame, hann);
  if (level == SpectralLevel::kBest && HasAvx512()) {
    return Avx512SpectralKernel(frame, hann);
  }
  return Avx2SpectralKernel(frame, hann);
}

class FramesOnCpu : public SpectralFrames {
 public:
  FramesOnCpu(const plan::SpectralOptions& options, SpectralLevel level)
      : options_(options),
        kernel_(KernelAt(level, options.frame, options.window == plan::SpectralWindow::kHann)),
        work_(options),
        shared_(options.hop % kSpectralColumns == 0),
        held_(static_cast<std::size_t>(options.frame / kSpectralColumns)),
        border_(static_cast<std::size_t>(BorderRows() * kBorderColumns)) {}

  Status Add(const SpectralPlane& plane, const FrameRange& frames,
             std::span<const std::uint8_t> wanted, SpectralSums& sums) override {
    PB_RETURN_IF_ERROR(Check(plane, frames, wanted, sums));
    const std::int64_t columns = frames.column_end - frames.column_begin;
    for (std::int64_t row = frames.row_begin; row < frames.row_end; ++row) {
      std::fill(held_.begin(), held_.end(), -1);
      for (std::int64_t column = 0; column < columns; ++column) {
        const auto at = static_cast<std::size_t>((row - frames.row_begin) * columns + column);
        if (!wanted.empty() && wanted[at] == 0) continue;
        AddFrame(plane, row * options_.hop, (frames.column_begin + column) * options_.hop);
        if (work_.tally.ring_bound > kMaxRingTally || work_.tally.frames >= kMaxTallyFrames) {
          Flush(work_.tally, sums);
        }
      }
    }
    Flush(work_.tally, sums);
    return absl::OkStatus();
  }

 private:
  static constexpr std::int64_t kBorderColumns = kSpectralColumns + 2 * plan::kGauss7Radius;

  std::int64_t BorderRows() const { return options_.frame + 2 * plan::kGauss7Radius; }

  Status Check(const SpectralPlane& plane, const FrameRange& frames,
               std::span<const std::uint8_t> wanted, const SpectralSums& sums) const {
    PB_RETURN_IF_ERROR(CheckPlaneSide("rows", options_, frames.row_begin, frames.row_end,
                                      {plane.top, plane.height}, plane.image_height));
    PB_RETURN_IF_ERROR(CheckPlaneSide("columns", options_, frames.column_begin, frames.column_end,
                                      {plane.left, plane.width}, plane.image_width));
    const std::int64_t rows = frames.row_end - frames.row_begin;
    const std::int64_t columns = frames.column_end - frames.column_begin;
    if (rows > 0 && columns > 0 && (plane.pixels == nullptr || plane.row_bytes < plane.width)) {
      return RefusedPlane("the plane has no pixels, or rows longer than their distance");
    }
    if (columns > 0 && static_cast<std::uint64_t>(rows) > kMaxSpectralFrames / columns) {
      return RefusedPlane("too many frames at once");
    }
    const auto count = static_cast<std::uint64_t>(rows * columns);
    if (!wanted.empty() && wanted.size() != count) {
      return RefusedPlane(StrCat("wanted: ", wanted.size(), " of ", count, " frames"));
    }
    if (sums.ring_power.size() != static_cast<std::size_t>(options_.frame / 2 + 1) ||
        sums.coefficient_q.empty() == options_.coefficients) {
      return RefusedPlane("the sums are of other options");
    }
    const std::uint64_t limit = options_.coefficients ? kMaxCoefficientFrames : kMaxSpectralFrames;
    if (count > limit || sums.frames > limit - count) {
      return ResourceExhausted("count spectral frames: more than ", limit,
                               " frames in one set of sums");
    }
    return absl::OkStatus();
  }

  void AddFrame(const SpectralPlane& plane, std::int64_t top, std::int64_t left) {
    const std::int64_t first = shared_ ? left % options_.frame : 0;
    for (std::int64_t c = 0; c < options_.frame; c += kSpectralColumns) {
      const std::int64_t slot = (first + c) % options_.frame;
      std::int64_t& held = held_[static_cast<std::size_t>(slot / kSpectralColumns)];
      if (shared_ && held == left + c) continue;
      held = left + c;
      TransformColumns(plane, top, left + c, static_cast<int>(slot));
    }
    kernel_.count_frame(work_, static_cast<int>(first));
  }

  void TransformColumns(const SpectralPlane& plane, std::int64_t top, std::int64_t left, int slot) {
    const std::int64_t halo = plan::SpectralHalo(options_);
    ColumnBlock block{nullptr, plane.row_bytes, slot, halo > 0};
    if (top >= halo && left >= halo && top + options_.frame + halo <= plane.image_height &&
        left + kSpectralColumns + halo <= plane.image_width) {
      block.pixels =
          plane.pixels + (top - halo - plane.top) * plane.row_bytes + (left - halo - plane.left);
    } else {
      block.pixels = Bordered(plane, top, left);
      block.row_bytes = kBorderColumns;
    }
    kernel_.transform_columns(work_, block);
  }

  /// A copy of the pixels that gauss7 needs; pixels beyond the image are reflected.
  const std::uint8_t* Bordered(const SpectralPlane& plane, std::int64_t top, std::int64_t left) {
    const bool inside = left >= plan::kGauss7Radius &&
                        left + kSpectralColumns + plan::kGauss7Radius <= plane.image_width;
    for (std::int64_t r = 0; r < BorderRows(); ++r) {
      const std::int64_t y = Reflected(top - plan::kGauss7Radius + r, plane.image_height);
      const std::uint8_t* row = plane.pixels + (y - plane.top) * plane.row_bytes;
      std::uint8_t* out = border_.data() + r * kBorderColumns;
      if (inside) {
        std::memcpy(out, row + (left - plan::kGauss7Radius - plane.left), kBorderColumns);
        continue;
      }
      for (std::int64_t c = 0; c < kBorderColumns; ++c) {
        out[c] = row[Reflected(left - plan::kGauss7Radius + c, plane.image_width) - plane.left];
      }
    }
    return border_.data();
  }

  plan::SpectralOptions options_;
  SpectralKernel kernel_;
  SpectralWork work_;
  bool shared_;                     ///< frames that overlap sideways use the same columns
  std::vector<std::int64_t> held_;  ///< the image column of the first of each slot group, or -1
  std::vector<std::uint8_t> border_;
};

}  // namespace

StatusOr<std::unique_ptr<SpectralFrames>> SpectralFrames::Create(
    const plan::SpectralOptions& options, SpectralLevel level) {
  PB_RETURN_IF_ERROR(Annotate(options.Check(), "spectral"));
  return std::unique_ptr<SpectralFrames>(std::make_unique<FramesOnCpu>(options, level));
}

}  // namespace patchbay::ops
