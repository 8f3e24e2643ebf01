// How much of any box of an image is tissue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/model/positions/cell_set.h"

namespace patchbay::plan {

/// The pixels of a plane that are tissue, from a mask's cells: exact for boxes of any size.
class TissueArea {
 public:
  TissueArea(const CellSet& tissue, const Extent& size);

  /// The tissue in some rows: a few instructions a box, fewer where the one before was near.
  class Band {
   public:
    /// Has no rows yet. `area` outlives it.
    explicit Band(const TissueArea& area);
    /// Takes rows [y, y + height) of level 0; at once where they are those of the last call. They
    /// may reach past the image, where there is no tissue; so may columns.
    void Lay(std::int64_t y, std::int64_t height);
    /// Pixels of tissue in columns [x, x + width) of the rows.
    std::uint64_t In(std::int64_t x, std::int64_t width) {
      return static_cast<std::uint64_t>(UpTo(x + width) - UpTo(x));
    }

   private:
    static constexpr std::size_t kColumnsLaid = 32;  ///< sums that are made together

    /// A row of pixels that ends or begins the band: what its row of cells and the next add.
    struct Border {
      const std::uint32_t *cells, *next;
      std::int64_t of_cells, of_next;
    };
    Border BorderAt(std::int64_t y) const;
    void LaySums(std::size_t block);

    /// Rows of pixels above the bottom less those above the top, in the cells left of a column.
    std::int64_t SumAt(std::size_t column) {
      const std::size_t block = column / kColumnsLaid;
      if (laid_[block] != rows_laid_) LaySums(block);
      return sums_[column];
    }

    std::int64_t UpTo(std::int64_t x) {
      x = std::clamp<std::int64_t>(x, 0, area_.columns_ << area_.shift_);
      const auto column = static_cast<std::size_t>(x >> area_.shift_);
      const std::int64_t step = std::int64_t{1} << area_.shift_, beyond = x & (step - 1);
      const std::int64_t whole = SumAt(column) * (step - beyond);
      return beyond == 0 ? whole : whole + SumAt(column + 1) * beyond;
    }

    const TissueArea& area_;
    std::int64_t y_ = 0, height_ = 0;
    Border top_, bottom_;
    std::vector<std::int64_t> sums_;   ///< pixels by row, in the cells to the left of each column
    std::vector<std::uint64_t> laid_;  ///< the rows that each block of sums_ is of
    std::uint64_t rows_laid_ = 1;
  };

 private:
  int shift_;  ///< the mask's step is 1 << shift_
  std::int64_t rows_, columns_;
  std::vector<std::uint32_t> sums_;  ///< cells above and left, (rows + 1) x (columns + 1)
};

}  // namespace patchbay::plan
