// One strip: tiles in, integers out. Every native tile is decoded once; a frame is measured as soon
// as its last pixel is there.
#include "workers/jobs/spectra/strip.h"

#include <algorithm>
#include <tuple>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "workers/jobs/spectra/engine.h"
#include "workers/jobs/spectra/planes.h"
#include "workers/jobs/spectra/spectra.h"
#include "workers/jobs/spectra/staging.h"
#include "workers/jobs/spectra/units.h"

namespace patchbay::workers {
namespace {

/// Pixels of frames between two signs of progress: tens of milliseconds of one core for each
/// channel. Larger means slower to notice that a task was cancelled, and a core that many share may
/// show nothing for as long as a lease lasts.
constexpr std::int64_t kFramePixelsAtOnce = std::int64_t{1} << 24;
/// Frame columns that wait for their neighbours, so that transformed columns are shared and sums
/// flushed once for all of them. Larger means pixels lie longer before they are measured.
constexpr std::int64_t kColumnsAtOnce = 256;

/// The frames of a strip that are counted. A value.
class WantedFrames {
 public:
  WantedFrames(const ops::FrameRange& frames, std::vector<std::uint8_t> wanted)
      : frames_(frames), wanted_(std::move(wanted)) {}

  bool Any(const ops::FrameRange& range) const {
    if (wanted_.empty()) return FramesIn(Intersect(range, frames_)) > 0;
    bool any = false;
    ForEach(range, [&](std::size_t i) { any = any || wanted_[i] != 0; });
    return any;
  }

  /// How many it left out that counted until now.
  std::uint64_t LeaveOut(const ops::FrameRange& range) {
    if (wanted_.empty()) wanted_.assign(static_cast<std::size_t>(FramesIn(frames_)), 1);
    std::uint64_t changed = 0;
    ForEach(range, [&](std::size_t i) { changed += std::exchange(wanted_[i], 0); });
    return changed;
  }

  /// As SpectralFrames::Add takes it; empty when all count.
  std::vector<std::uint8_t> Of(const ops::FrameRange& range) const {
    std::vector<std::uint8_t> bytes;
    if (wanted_.empty()) return bytes;
    ForEach(range, [&](std::size_t i) { bytes.push_back(wanted_[i]); });
    return bytes;
  }

 private:
  template <typename Visit>
  void ForEach(const ops::FrameRange& range, const Visit& visit) const {
    const ops::FrameRange inside = Intersect(range, frames_);
    const std::int64_t columns = frames_.column_end - frames_.column_begin;
    for (std::int64_t row = inside.row_begin; row < inside.row_end; ++row) {
      const std::int64_t first = (row - frames_.row_begin) * columns - frames_.column_begin;
      for (std::int64_t c = inside.column_begin; c < inside.column_end; ++c) {
        visit(static_cast<std::size_t>(first + c));
      }
    }
  }

  ops::FrameRange frames_;
  std::vector<std::uint8_t> wanted_;  ///< empty: all
};

std::vector<SpectraUnit> UnitsOf(const SpectraGrid& grid, const ops::FrameRange& frames,
                                 const WantedFrames& wanted) {
  std::vector<SpectraUnit> units;
  for (const Box& box : CutUnits(grid, frames)) {
    SpectraUnit unit;
    unit.box = box;
    unit.wanted = wanted.Any(FramesTouching(grid, box));
    units.push_back(std::move(unit));
  }
  return units;
}

class StripMeasure {
 public:
  StripMeasure(TaskContext& context, const StripRequest& order, const SpectraGrid& grid,
               std::unique_ptr<ops::SpectralFrames> engine)
      : context_(context),
        order_(order),
        grid_(grid),
        wanted_(order.frames, order.wanted),
        units_(order.image, grid, UnitsOf(grid, order.frames, wanted_), AheadOf(context)),
        decoder_(order.image, grid),
        planes_(grid),
        next_row_(order.frames.row_begin),
        band_end_(order.frames.row_begin),
        engine_(std::move(engine)) {
    result_.sums.assign(static_cast<std::size_t>(plan::SpectralChannels(grid.options)),
                        ops::SpectralSums(grid.options));
    planes_.Hold(ColumnsHeld());
    for (std::uint8_t frame : order.wanted) result_.frames_off_tissue += frame == 0 ? 1 : 0;
  }

  StatusOr<StripResult> Run() {
    std::int64_t band_y = -1;
    while (std::unique_ptr<SpectraUnit> unit = units_.Next()) {
      PB_RETURN_IF_ERROR(context_.CheckCancelled());
      if (unit->box.y != band_y) {
        if (result_.damaged) break;
        band_y = unit->box.y;
        StartBand(unit->box);
      }
      PB_RETURN_IF_ERROR(Measure(*unit));
      units_.GiveBack(std::move(unit));
    }
    PB_RETURN_IF_ERROR(engine_->Finish());
    return std::move(result_);
  }

 private:
  /// A worker of one core decodes where it measures: see notes/0001 of this folder.
  static UnitsAheadOptions AheadOf(const TaskContext& context) {
    UnitsAheadOptions ahead;
    ahead.is_decoded = context.threads > 1;
    ahead.threads = context.threads;
    return ahead;
  }

  /// Whole tiles that hold all columns of the strip.
  Box ColumnsHeld() const {
    const Box need = PixelsOf(grid_, order_.frames);
    const std::int64_t left = need.x / grid_.chunk_width * grid_.chunk_width;
    const std::int64_t tiles = (need.x + need.width - 1) / grid_.chunk_width + 1;
    return Box2D(need.y, left, 0, std::min(grid_.width, tiles * grid_.chunk_width) - left);
  }

  void StartBand(const Box& box) {
    const std::int64_t bottom = box.y + box.height;
    next_row_ = band_end_;
    band_end_ =
        std::clamp(RowsAbove(grid_, bottom), order_.frames.row_begin, order_.frames.row_end);
    next_column_ = order_.frames.column_begin;
    const ops::FrameRange rest = {next_row_, order_.frames.row_end, order_.frames.column_begin,
                                  order_.frames.column_end};
    const std::int64_t top = FramesIn(rest) == 0 ? box.y : PixelsOf(grid_, rest).y;
    planes_.MoveTo(std::min(top, box.y), bottom);
  }

  Status TakePixels(SpectraUnit& unit) {
    if (unit.planes) {
      PB_RETURN_IF_ERROR(unit.decoded);
      if (unit.wanted) planes_.Copy(*unit.planes);
    } else {
      unit.damaged.clear();
      PB_RETURN_IF_ERROR(decoder_.Decode(unit, planes_, unit.damaged));
    }
    for (DamagedTile& tile : unit.damaged) NoteDamage(std::move(tile));
    return absl::OkStatus();
  }

  Status Measure(SpectraUnit& unit) {
    PB_RETURN_IF_ERROR(TakePixels(unit));
    context_.AddProgress();
    const std::int64_t end =
        std::min(ColumnsBefore(grid_, unit.box.x + unit.box.width), order_.frames.column_end);
    if (end < order_.frames.column_end && end - next_column_ < kColumnsAtOnce) {
      return absl::OkStatus();
    }
    const ops::FrameRange complete = {next_row_, band_end_, next_column_, end};
    next_column_ = std::max(next_column_, end);
    return result_.damaged ? absl::OkStatus() : AddFrames(complete);
  }

  void NoteDamage(DamagedTile tile) {
    const Box box = Intersect(Box2D(tile.row * grid_.chunk_height, tile.column * grid_.chunk_width,
                                    grid_.chunk_height, grid_.chunk_width),
                              Box2D(0, 0, grid_.height, grid_.width));
    const ops::FrameRange frames = FramesTouching(grid_, box);
    if (order_.settings.skip_damaged) {
      result_.frames_skipped += wanted_.LeaveOut(frames);
    } else if (wanted_.Any(frames)) {
      const auto place = [](const DamagedTile& t) { return std::tie(t.row, t.column); };
      if (!result_.damaged || place(tile) < place(*result_.damaged)) {
        result_.damaged = std::move(tile);
      }
    }
  }

  /// Row by row and part by part, so that progress shows.
  Status AddFrames(const ops::FrameRange& range) {
    const std::int64_t frame = order_.settings.spectral.frame;
    const std::int64_t at_once = std::max<std::int64_t>(1, kFramePixelsAtOnce / (frame * frame));
    const std::int64_t columns =
        std::clamp<std::int64_t>(range.column_end - range.column_begin, 1, at_once);
    const std::int64_t rows = std::max<std::int64_t>(1, at_once / columns);
    for (std::int64_t row = range.row_begin; row < range.row_end; row += rows) {
      for (std::int64_t column = range.column_begin; column < range.column_end; column += columns) {
        PB_RETURN_IF_ERROR(AddPart({row, std::min(row + rows, range.row_end), column,
                                    std::min(column + columns, range.column_end)}));
        context_.AddProgress();
        PB_RETURN_IF_ERROR(context_.CheckCancelled());
      }
    }
    return absl::OkStatus();
  }

  Status AddPart(const ops::FrameRange& part) {
    if (!wanted_.Any(part)) return absl::OkStatus();
    const std::vector<std::uint8_t> wanted = wanted_.Of(part);
    for (std::size_t channel = 0; channel < result_.sums.size(); ++channel) {
      PB_RETURN_IF_ERROR(engine_->Add(planes_.View(static_cast<int>(channel)), part, wanted,
                                      result_.sums[channel]));
    }
    return absl::OkStatus();
  }

  TaskContext& context_;
  const StripRequest& order_;
  const SpectraGrid grid_;
  WantedFrames wanted_;
  UnitsAhead units_;
  UnitDecoder decoder_;
  SpectraPlanes planes_;
  StripResult result_;
  /// Frames [next_row_, band_end_) become complete with the band that is being decoded; of them
  /// those before next_column_ are measured.
  std::int64_t next_row_ = 0, band_end_ = 0, next_column_ = 0;
  /// Goes first: what it still counts goes into result_.
  std::unique_ptr<ops::SpectralFrames> engine_;
};

}  // namespace

StatusOr<StripResult> MeasureStrip(TaskContext& context, const StripRequest& order) {
  const SpectraGrid grid = GridOf(order.image.layout().levels.front(), order.settings.spectral,
                                  SpectraPaceOf(order.settings));
  if (FramesIn(order.frames) == 0 ||
      FramesIn(Intersect(order.frames, grid.All())) != FramesIn(order.frames)) {
    return absl::InvalidArgumentError("spectra payload: frames outside the image");
  }
  PB_ASSIGN_OR_RETURN(std::unique_ptr<ops::SpectralFrames> engine,
                      MakeSpectraEngine(context, order.settings));
  StripMeasure measure(context, order, grid, std::move(engine));
  return measure.Run();
}

}  // namespace patchbay::workers
