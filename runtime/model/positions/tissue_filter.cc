#include "runtime/model/positions/tissue_filter.h"

#include <bit>

namespace patchbay::plan {
namespace {

std::int64_t Clamped(__int128 value) {
  return static_cast<std::int64_t>(
      std::min<__int128>(value, std::numeric_limits<std::int64_t>::max()));
}

/// Cells a side of a tile, as a power of two.
int TileShift(const PatchAxis& along, std::int64_t most) {
  const std::int64_t cells = std::clamp<std::int64_t>(along.source / (2 * along.step), 1, most);
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(cells))) - 1;
}

}  // namespace

TissueFilter::TissueFilter(const TissueArea& tissue, const PatchLattice& lattice,
                           std::int64_t wanted)
    : along_y_(lattice.y),
      along_x_(lattice.x),
      wanted_(wanted),
      shift_(TileShift(along_x_, kWordCells)),
      tiles_band_(tissue),
      cells_band_(tissue) {
  // Every patch has at least as many pixels as the lengths say that are rounded down.
  const __int128 least =
      static_cast<__int128>(Scaled(along_y_.source, along_y_.level, along_y_.full)) *
      Scaled(along_x_.source, along_x_.level, along_x_.full);
  least_of_tile_ = Clamped((least * wanted + kFractionUnits - 1) / kFractionUnits);
  most_other_ = Clamped(least * (kFractionUnits - wanted) / kFractionUnits);
}

std::uint64_t TissueFilter::LookAlong(std::uint32_t y, std::uint32_t number) {
  const TilesWord& tiles = LookAtTiles(y >> shift_, number);
  std::uint64_t taken = tiles.taken;
  for (std::uint64_t mixed = tiles.mixed; mixed != 0;) {
    const int at = std::countr_zero(mixed);
    taken |= LookAtCells(y, std::int64_t{number} * kWordCells + at) << at;
    mixed &= ~(Ones(std::uint64_t{1} << shift_) << at);
  }
  return taken;
}

/// The taken cells of a tile's row, cell by cell.
std::uint64_t TissueFilter::LookAtCells(std::uint32_t y, std::int64_t first) {
  const std::int64_t cells = std::int64_t{1} << shift_;
  if (cells_row_ != y) LayCells(y);
  std::uint64_t taken = 0;
  for (std::int64_t i = 0; i < cells;) {
    const std::int64_t begin = along_x_.Begin(first + i), end = along_x_.End(first + i);
    const auto covered = static_cast<std::int64_t>(cells_band_.In(begin, end - begin));
    const std::int64_t surplus = covered - LeastOf(end - begin);
    // The next cells are as this one is: each can only change so much.
    const std::int64_t room = (surplus >= 0 ? surplus : -surplus - 1) - near_;
    const std::int64_t next = room < each_ ? i + 1 : std::min(cells, i + 1 + room / each_);
    if (surplus >= 0) taken |= Ones(static_cast<std::uint64_t>(next - i)) << i;
    i = next;
  }
  return taken;
}

/// Pixels of tissue that a patch of the row must have.
std::int64_t TissueFilter::LeastOf(std::int64_t width) {
  if (width != width_) {
    width_ = width;
    const __int128 least = static_cast<__int128>(wanted_) * height_ * width;
    least_ = Clamped((least + kFractionUnits - 1) / kFractionUnits);
  }
  return least_;
}

/// A patch that moves by one pixel gains or loses no more than a column of its height. In a level
/// of fewer pixels, a patch moves by up to two more of them, and its width changes by one, by
/// rounding.
void TissueFilter::LayCells(std::uint32_t y) {
  cells_row_ = y;
  const std::int64_t begin = along_y_.Begin(y);
  height_ = along_y_.End(y) - begin;
  width_ = -1;
  cells_band_.Lay(begin, height_);
  const bool is_scaled = along_x_.full != along_x_.level;
  const __int128 pixel = is_scaled ? along_x_.full / along_x_.level + 1 : 1;
  const __int128 columns = along_x_.before_centre ? along_x_.step : along_x_.step * pixel;
  each_ = std::max<std::int64_t>(1, Clamped(columns * height_));
  near_ = is_scaled ? Clamped((2 * pixel + 3) * height_) : 0;
}

/// Every patch of a tile has at most the tissue of the box around them all, and lacks at most the
/// box's other pixels.
const TissueFilter::TilesWord& TissueFilter::LookAtTiles(std::uint32_t tile_y,
                                                         std::uint32_t number) {
  if (number >= tiles_.size()) tiles_.resize(number + 1);
  TilesWord& word = tiles_[number];
  if (word.row == tile_y) return word;
  if (tiles_row_ != tile_y) LayTiles(tile_y);
  word = {.row = tile_y};
  const std::uint64_t cells = std::uint64_t{1} << shift_;
  for (std::uint64_t at = 0; at < kWordCells; at += cells) {
    const auto first = static_cast<std::int64_t>(std::uint64_t{number} * kWordCells + at);
    const std::int64_t begin = along_x_.Begin(first);
    const std::int64_t width = along_x_.End(first + static_cast<std::int64_t>(cells) - 1) - begin;
    const auto covered = static_cast<std::int64_t>(tiles_band_.In(begin, width));
    if (covered < least_of_tile_) continue;
    const bool all = tiles_height_ * width - covered <= most_other_;
    (all ? word.taken : word.mixed) |= Ones(cells) << at;
  }
  return word;
}

void TissueFilter::LayTiles(std::uint32_t tile_y) {
  tiles_row_ = tile_y;
  const std::int64_t first = std::int64_t{tile_y} << shift_;
  const std::int64_t begin = along_y_.Begin(first);
  tiles_height_ = along_y_.End(first + (std::int64_t{1} << shift_) - 1) - begin;
  tiles_band_.Lay(begin, tiles_height_);
}

}  // namespace patchbay::plan
