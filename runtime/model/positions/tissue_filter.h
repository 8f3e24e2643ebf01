// The cells of a set whose patches have enough tissue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/positions/cell_set.h"
#include "runtime/model/positions/patch_lattice.h"
#include "runtime/model/positions/tissue_area.h"

namespace patchbay::plan {

/// The units of a fraction of a patch: decimal, so that 0.6 of 100 pixels are 60.
inline constexpr std::int64_t kFractionUnits = 1'000'000'000;

/// Looks at cells by tiles of about half a patch a side: most tiles lie so far from the border of
/// the tissue that all of their cells are taken or left. It keeps what it found of the last row, so
/// that sets of one lattice share it. One thread.
class TissueFilter {
 public:
  /// `tissue` outlives it. `wanted`: the least fraction of a patch, in kFractionUnits.
  TissueFilter(const TissueArea& tissue, const PatchLattice& lattice, std::int64_t wanted);

  /// Gives `taken` the cells of a run that are taken: `Add(first, bits, goes_on)`, where bit i is
  /// the cell i behind `first` in its row, and `goes_on` is 1 where the cell before `first` is
  /// taken as one of the run. Fastest for runs that come row by row.
  template <typename Taken>
  Status Filter(const CellRun& run, Taken& taken) {
    const std::uint64_t end = std::uint64_t{run.x} + run.count;
    std::uint64_t goes_on = 0;
    for (std::uint64_t first = run.x / kWordCells * kWordCells; first < end; first += kWordCells) {
      const std::uint64_t before = std::max<std::uint64_t>(first, run.x) - first;
      const std::uint64_t cells = std::min<std::uint64_t>(end - first, kWordCells);
      const std::uint64_t of_run = Ones(cells) >> before << before;
      const std::uint64_t bits =
          of_run & TakenOf(run.y, static_cast<std::uint32_t>(first / kWordCells));
      PB_RETURN_IF_ERROR(
          taken.Add({run.z, run.y, static_cast<std::int64_t>(first)}, bits, goes_on));
      goes_on = bits >> (kWordCells - 1);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr std::uint64_t kUnknownRow = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kWordCells = 64;

  /// Cells of the last row that was asked of: bit i is the i-th of them.
  struct Word {
    std::uint64_t row = kUnknownRow;
    std::uint64_t taken = 0;
  };
  /// The same of the last row of tiles: the cells of tiles that are taken whole, and of those where
  /// each cell is looked at.
  struct TilesWord {
    std::uint64_t row = kUnknownRow;
    std::uint64_t taken = 0, mixed = 0;
  };

  /// The first `bits` of a word, one at least.
  static std::uint64_t Ones(std::uint64_t bits) { return ~std::uint64_t{0} >> (kWordCells - bits); }

  std::uint64_t TakenOf(std::uint32_t y, std::uint32_t number) {
    if (number >= words_.size()) words_.resize(number + 1);
    Word& word = words_[number];
    if (word.row != y) word = {y, LookAlong(y, number)};
    return word.taken;
  }
  std::uint64_t LookAlong(std::uint32_t y, std::uint32_t number);
  std::uint64_t LookAtCells(std::uint32_t y, std::int64_t first);
  const TilesWord& LookAtTiles(std::uint32_t tile_y, std::uint32_t number);
  void LayTiles(std::uint32_t tile_y);
  void LayCells(std::uint32_t y);
  std::int64_t LeastOf(std::int64_t width);

  PatchAxis along_y_, along_x_;
  std::int64_t wanted_;
  int shift_;  ///< a tile has 1 << shift_ cells a side, at most a word's
  /// Tissue in the box around a tile's patches below which none is taken, and the other pixels in
  /// it up to which all are.
  std::int64_t least_of_tile_, most_other_;

  TissueArea::Band tiles_band_;
  std::uint64_t tiles_row_ = kUnknownRow;
  std::int64_t tiles_height_ = 0;  ///< height of the box around its patches, in level 0
  std::vector<TilesWord> tiles_;

  TissueArea::Band cells_band_;
  std::uint64_t cells_row_ = kUnknownRow;
  std::int64_t height_ = 0;  ///< height of its patches, in level 0
  std::int64_t width_ = -1, least_ = 0;
  std::int64_t near_ = 0, each_ = 1;  ///< tissue that rounding, and each cell further, may change
  std::vector<Word> words_;
};

}  // namespace patchbay::plan
