#include "workers/jobs/spectra/grid.h"

#include <algorithm>
#include <array>

namespace patchbay::workers {
namespace {

/// Most bytes of the planes that a strip keeps, and most columns: wider images are cut into panels.
constexpr std::int64_t kMaxPlaneBytes = std::int64_t{128} << 20;
constexpr std::int64_t kMaxPanelPixels = 131'072;
constexpr std::int64_t kUsualStrip = 1024;
/// A longer task would keep its worker too long; then decoding tiles twice costs next to nothing.
constexpr std::int64_t kMostSeconds = 60;
constexpr std::int64_t kLeastStrips = 8;
/// A slide with fewer tasks is cut into this many if each still has half a second of work, so that
/// a few workers share it evenly.
constexpr std::int64_t kFewTasks = 4;
/// Most sums of one slide's strips: as text, at most 11 KiB each, they travel in one message.
constexpr std::int64_t kMaxStripSums = 384;
/// A fine tail cuts the last two strips into these, in sixteenths of a strip; none is shorter than
/// kLeastTailRows.
constexpr std::array<std::int64_t, 7> kTailSixteenths = {8, 8, 4, 4, 4, 2, 2};
constexpr std::int64_t kLeastTailRows = 4;
constexpr std::int64_t kMoreOfTail = static_cast<std::int64_t>(kTailSixteenths.size()) - 2;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t BandRows(const SpectraGrid& grid) {
  return CeilDiv(grid.pace.band_rows, grid.chunk_height) * grid.chunk_height;
}

/// Frame columns of a panel.
std::int64_t PanelColumns(const SpectraGrid& grid) {
  const plan::SpectralOptions& o = grid.options;
  const std::int64_t rows = BandRows(grid) + o.frame + o.hop + 2 * plan::SpectralHalo(o);
  const std::int64_t pixels = std::max<std::int64_t>(
      4 * o.frame, std::min(kMaxPanelPixels, kMaxPlaneBytes / (rows * plan::SpectralChannels(o))));
  const std::int64_t most = (pixels - o.frame) / o.hop + 1;
  return CeilDiv(grid.columns, CeilDiv(grid.columns, most));
}

/// How many rows of tiles the strips above and below frame row `row` both decode.
std::int64_t SharedTileRows(const SpectraGrid& grid, std::int64_t row) {
  const plan::SpectralOptions& o = grid.options;
  const std::int64_t halo = plan::SpectralHalo(o);
  const std::int64_t begin = std::max<std::int64_t>(0, row * o.hop - halo);
  const std::int64_t end = std::min(grid.height, (row - 1) * o.hop + o.frame + halo);
  return (end - 1) / grid.chunk_height - begin / grid.chunk_height + 1;
}

/// The row at or a little before `row` where the fewest tiles are decoded twice.
std::int64_t BestCut(const SpectraGrid& grid, std::int64_t row, std::int64_t first) {
  const std::int64_t back = std::min((row - first) / 4, grid.chunk_height / grid.options.hop);
  std::int64_t best = row;
  for (std::int64_t r = row - 1; r >= row - back; --r) {
    if (SharedTileRows(grid, r) < SharedTileRows(grid, best)) best = r;
  }
  return best;
}

/// The number of strips of a panel of `columns` columns.
std::int64_t StripsOf(const SpectraGrid& grid, std::int64_t strip, std::int64_t columns) {
  const std::int64_t row_values = columns * grid.options.frame * grid.options.frame;
  std::int64_t rows =
      std::max(CeilDiv(kLeastStrips * strip, grid.options.hop),
               CeilDiv(grid.pace.values_of_a_second / kUsualStrip * strip, row_values));
  rows =
      std::clamp<std::int64_t>(kMostSeconds * grid.pace.values_of_a_second / row_values, 1, rows);
  const std::int64_t panels = CeilDiv(grid.columns, columns);
  const std::int64_t halves =
      2 * grid.rows * row_values / (grid.pace.values_of_a_second / kUsualStrip * strip);
  const std::int64_t most = std::max<std::int64_t>(
      1, (kMaxStripSums / plan::SpectralChannels(grid.options) - kMoreOfTail) / panels);
  const std::int64_t wanted = std::max(grid.rows / rows, std::min(kFewTasks, halves));
  return std::clamp<std::int64_t>(wanted, 1, std::min(most, grid.rows));
}

/// True for a slide of many strips (few are shared evenly as they are) whose smallest part still
/// has rows enough.
bool HasFineTail(const SpectraGrid& grid, std::int64_t count) {
  return count > kFewTasks && grid.rows / count * kTailSixteenths.back() / 16 >= kLeastTailRows;
}

/// The strips of a panel in sixteenths of an even one; they add up to 16 * count.
std::vector<std::int64_t> PartsOf(std::int64_t count, bool is_fine) {
  std::vector<std::int64_t> parts(static_cast<std::size_t>(is_fine ? count - 2 : count), 16);
  if (is_fine) parts.insert(parts.end(), kTailSixteenths.begin(), kTailSixteenths.end());
  return parts;
}

std::int64_t WholeBefore(std::int64_t edge, std::int64_t side, std::int64_t frames,
                         const plan::SpectralOptions& o) {
  if (edge >= side) return frames;
  const std::int64_t room = edge - o.frame - plan::SpectralHalo(o);
  return room < 0 ? 0 : std::min(frames, room / o.hop + 1);
}

}  // namespace

SpectraGrid GridOf(const LevelLayout& level, const plan::SpectralOptions& options,
                   const SpectraPace& pace) {
  SpectraGrid grid;
  grid.pace = pace;
  grid.height = level.size.y;
  grid.width = level.size.x;
  grid.chunk_height = std::clamp<std::int64_t>(level.chunk.y, 1, level.size.y);
  grid.chunk_width = std::clamp<std::int64_t>(level.chunk.x, 1, level.size.x);
  grid.options = options;
  grid.rows = plan::FramesAlong(level.size.y, options);
  grid.columns = plan::FramesAlong(level.size.x, options);
  if (grid.rows == 0 || grid.columns == 0) grid.rows = grid.columns = 0;
  return grid;
}

results::SpectraRemainder RemainderOf(const SpectraGrid& grid) {
  const auto beyond = [&](std::int64_t pixels, std::int64_t frames) {
    return frames == 0 ? pixels : pixels - (frames - 1) * grid.options.hop - grid.options.frame;
  };
  return {beyond(grid.width, grid.columns), beyond(grid.height, grid.rows)};
}

std::vector<ops::FrameRange> CutStrips(const SpectraGrid& grid, std::int64_t strip,
                                       StripTail tail) {
  std::vector<ops::FrameRange> strips;
  if (grid.Frames() == 0) return strips;
  const std::int64_t columns = PanelColumns(grid);
  const std::int64_t count = StripsOf(grid, strip, columns);
  for (std::int64_t column = 0; column < grid.columns; column += columns) {
    const bool is_last = column + columns >= grid.columns;
    const bool is_fine = tail == StripTail::kFine && is_last && HasFineTail(grid, count);
    std::int64_t row = 0, sixteenths = 0;
    for (const std::int64_t part : PartsOf(count, is_fine)) {
      sixteenths += part;
      const std::int64_t target = grid.rows * sixteenths / (16 * count);
      const std::int64_t end = target == grid.rows ? target : BestCut(grid, target, row);
      strips.push_back({row, end, column, std::min(column + columns, grid.columns)});
      row = end;
    }
  }
  return strips;
}

Box PixelsOf(const SpectraGrid& grid, const ops::FrameRange& frames) {
  if (FramesIn(frames) == 0) return {};
  const plan::SpectralOptions& o = grid.options;
  const std::int64_t halo = plan::SpectralHalo(o);
  const Box wanted =
      Box2D(frames.row_begin * o.hop - halo, frames.column_begin * o.hop - halo,
            (frames.row_end - frames.row_begin - 1) * o.hop + o.frame + 2 * halo,
            (frames.column_end - frames.column_begin - 1) * o.hop + o.frame + 2 * halo);
  return Intersect(wanted, Box2D(0, 0, grid.height, grid.width));
}

ops::FrameRange FramesTouching(const SpectraGrid& grid, const Box& box) {
  const plan::SpectralOptions& o = grid.options;
  const std::int64_t reach = o.frame + plan::SpectralHalo(o);
  const auto first = [&](std::int64_t begin) {
    return std::max<std::int64_t>(0, CeilDiv(std::max<std::int64_t>(0, begin - reach + 1), o.hop));
  };
  const auto end = [&](std::int64_t last, std::int64_t frames) {
    return std::min(frames, (last + plan::SpectralHalo(o)) / o.hop + 1);
  };
  return {first(box.y), end(box.y + box.height - 1, grid.rows), first(box.x),
          end(box.x + box.width - 1, grid.columns)};
}

std::int64_t RowsAbove(const SpectraGrid& grid, std::int64_t bottom) {
  return WholeBefore(bottom, grid.height, grid.rows, grid.options);
}

std::int64_t ColumnsBefore(const SpectraGrid& grid, std::int64_t right) {
  return WholeBefore(right, grid.width, grid.columns, grid.options);
}

std::vector<Box> CutUnits(const SpectraGrid& grid, const ops::FrameRange& frames) {
  std::vector<Box> units;
  const Box need = PixelsOf(grid, frames);
  if (need.Empty()) return units;
  const Box image = Box2D(0, 0, grid.height, grid.width);
  const std::int64_t ch = grid.chunk_height, cw = grid.chunk_width;
  const std::int64_t top = need.y / ch * ch, left = need.x / cw * cw;
  const std::int64_t bottom = CeilDiv(need.y + need.height, ch) * ch;
  const std::int64_t right = CeilDiv(need.x + need.width, cw) * cw;
  const std::int64_t band = BandRows(grid);
  const std::int64_t block = std::max<std::int64_t>(1, grid.pace.unit_pixels / (band * cw)) * cw;
  for (std::int64_t y = top; y < bottom; y += band) {
    for (std::int64_t x = left; x < right; x += block) {
      units.push_back(
          Intersect(Box2D(y, x, std::min(band, bottom - y), std::min(block, right - x)), image));
    }
  }
  return units;
}

std::vector<Box> TilesOf(const SpectraGrid& grid, const Box& unit) {
  std::vector<Box> tiles;
  for (std::int64_t y = unit.y; y < unit.y + unit.height; y += grid.chunk_height) {
    for (std::int64_t x = unit.x; x < unit.x + unit.width; x += grid.chunk_width) {
      tiles.push_back(Intersect(Box2D(y, x, grid.chunk_height, grid.chunk_width), unit));
    }
  }
  return tiles;
}

ops::FrameRange Intersect(const ops::FrameRange& a, const ops::FrameRange& b) {
  return {std::max(a.row_begin, b.row_begin), std::min(a.row_end, b.row_end),
          std::max(a.column_begin, b.column_begin), std::min(a.column_end, b.column_end)};
}

std::int64_t FramesIn(const ops::FrameRange& frames) {
  const std::int64_t rows = frames.row_end - frames.row_begin;
  const std::int64_t columns = frames.column_end - frames.column_begin;
  return rows <= 0 || columns <= 0 ? 0 : rows * columns;
}

std::uint64_t RawBytesOf(const SpectraGrid& grid, const ops::FrameRange& frames, int channels) {
  const plan::SpectralOptions& o = grid.options;
  const auto along = [&](std::int64_t begin, std::int64_t end, std::int64_t all) {
    return end == all ? (end - 1 - begin) * o.hop + o.frame : (end - begin) * o.hop;
  };
  return static_cast<std::uint64_t>(along(frames.row_begin, frames.row_end, grid.rows) *
                                    along(frames.column_begin, frames.column_end, grid.columns) *
                                    channels);
}

}  // namespace patchbay::workers
