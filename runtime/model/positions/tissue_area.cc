#include "runtime/model/positions/tissue_area.h"

#include <algorithm>
#include <bit>

namespace patchbay::plan {
TissueArea::TissueArea(const CellSet& tissue, const Extent& size)
    : shift_(std::countr_zero(tissue.step())),
      rows_((size.y + tissue.step() - 1) >> shift_),
      columns_((size.x + tissue.step() - 1) >> shift_),
      sums_(static_cast<std::size_t>((rows_ + 1) * (columns_ + 1))) {
  const auto at = [&](std::int64_t y, std::int64_t x) -> std::uint32_t& {
    return sums_[static_cast<std::size_t>(y * (columns_ + 1) + x)];
  };
  auto run = tissue.runs().begin();
  for (std::int64_t y = 0; y < rows_; ++y) {
    std::uint32_t row = 0;
    std::int64_t x = 0;
    const auto fill = [&](std::int64_t end, std::uint32_t each) {
      for (; x < end; ++x) at(y + 1, x + 1) = at(y, x + 1) + (row += each);
    };
    for (; run != tissue.runs().end() && run->y == y; ++run) {
      fill(run->x, 0);
      fill(std::int64_t{run->x} + run->count, 1);
    }
    fill(columns_, 0);
  }
}

TissueArea::Band::Band(const TissueArea& area)
    : area_(area),
      top_(BorderAt(0)),
      bottom_(top_),
      sums_(static_cast<std::size_t>(area.columns_ + 1)),
      laid_(sums_.size() / kColumnsLaid + 1) {}

void TissueArea::Band::Lay(std::int64_t y, std::int64_t height) {
  if (y == y_ && height == height_) return;
  y_ = y;
  height_ = height;
  top_ = BorderAt(y);
  bottom_ = BorderAt(y + height);
  ++rows_laid_;
}

/// A cell that the border cuts counts with its share above the border.
TissueArea::Band::Border TissueArea::Band::BorderAt(std::int64_t y) const {
  const std::int64_t step = std::int64_t{1} << area_.shift_;
  y = std::clamp<std::int64_t>(y, 0, area_.rows_ << area_.shift_);
  const std::int64_t row = y >> area_.shift_, below = std::min(row + 1, area_.rows_);
  const auto at = [&](std::int64_t i) { return area_.sums_.data() + i * (area_.columns_ + 1); };
  return {at(row), at(below), step - (y & (step - 1)), y & (step - 1)};
}

void TissueArea::Band::LaySums(std::size_t block) {
  const std::size_t end = std::min(sums_.size(), (block + 1) * kColumnsLaid);
  for (std::size_t i = block * kColumnsLaid; i < end; ++i) {
    sums_[i] = bottom_.cells[i] * bottom_.of_cells + bottom_.next[i] * bottom_.of_next -
               top_.cells[i] * top_.of_cells - top_.next[i] * top_.of_next;
  }
  laid_[block] = rows_laid_;
}

}  // namespace patchbay::plan
