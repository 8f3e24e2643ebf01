#include "workers/jobs/labels/position_builder.h"

#include <algorithm>

#include "runtime/core/runs.h"

namespace patchbay::workers {
namespace {

/// Runs kept of one class and step. Larger means finer positions of large classes, and larger
/// files.
constexpr std::size_t kRunsKept = std::size_t{1} << 16;

std::uint32_t CellOf(std::int64_t at, std::uint32_t step) {
  return static_cast<std::uint32_t>(at / step);
}

}  // namespace

PositionBuilder::PositionBuilder(const plan::ClassTable& classes, const Extent& level,
                                 std::uint32_t finest_step)
    : level_(level), finest_step_(finest_step) {
  class_of_.fill(-1);
  std::vector<plan::LabelClass> sorted = classes.classes;
  std::erase_if(sorted, [](const plan::LabelClass& c) { return c.value == plan::kIgnoreClass; });
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  for (const plan::LabelClass& one : sorted) {
    class_of_[static_cast<std::size_t>(one.value)] = static_cast<int>(classes_.size());
    Cells cells;
    cells.name = one.name;
    for (const std::uint32_t step : kSteps) cells.sets.emplace_back(step);
    classes_.push_back(std::move(cells));
    values_.push_back(static_cast<std::uint8_t>(one.value));
  }
}

void PositionBuilder::Append(std::uint8_t value, std::size_t step, const plan::CellRun& run) {
  const int index = class_of_[value];
  if (index < 0) return;
  Cells& cells = classes_[static_cast<std::size_t>(index)];
  if (cells.is_full[step]) return;
  plan::CellSet& set = cells.sets[step];
  cells.is_full[step] = !set.Append(run).ok() || set.runs().size() > kRunsKept;
}

/// The cells whose centres lie in pixel row `y`.
void PositionBuilder::AddLine(std::int64_t y, std::size_t step, std::int64_t side,
                              const std::vector<zarr::LabelCell>& cells) {
  const auto size = static_cast<std::int64_t>(kSteps[step]);
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::int64_t left = static_cast<std::int64_t>(c) * side;
    const std::int64_t right = std::min(level_.x, left + side);
    // The first centre at or right of `left`.
    std::int64_t x = (left + size - 1 - size / 2) / size * size + size / 2;
    const std::uint8_t* row =
        cells[c].pixels == nullptr ? nullptr : cells[c].pixels.get() + y % side * side;
    while (x < right) {
      const std::uint8_t value = row == nullptr ? cells[c].value : row[x - left];
      std::int64_t end = x + size;
      if (row == nullptr) {
        end = x + (right - x + size - 1) / size * size;
      } else if (size == 1) {
        end = x + RunLength(row + x - left, right - x);
      } else {
        while (end < right && row[end - left] == value) end += size;
      }
      Append(value, step,
             {0, CellOf(y, kSteps[step]), CellOf(x, kSteps[step]), CellOf(end - x, kSteps[step])});
      x = end;
    }
  }
}

void PositionBuilder::AddRow(std::int64_t row, std::int64_t side,
                             const std::vector<zarr::LabelCell>& cells) {
  const bool is_ignored = std::all_of(cells.begin(), cells.end(), [&](const auto& cell) {
    return cell.pixels == nullptr && class_of_[cell.value] < 0;
  });
  if (is_ignored) return;
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    const bool is_full = std::all_of(classes_.begin(), classes_.end(),
                                     [&](const Cells& one) { return one.is_full[step]; });
    if (is_full) continue;
    const auto size = static_cast<std::int64_t>(kSteps[step]);
    const std::int64_t end = std::min(level_.y, (row + 1) * side);
    const std::int64_t top = row * side;
    for (std::int64_t y = (top + size - 1 - size / 2) / size * size + size / 2; y < end;
         y += size) {
      if (y >= top) AddLine(y, step, side, cells);
    }
  }
}

void PositionBuilder::AddVoxels(std::int64_t z, std::int64_t y, const std::uint8_t* row) {
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    const auto size = static_cast<std::int64_t>(kSteps[step]);
    if (y % size != size / 2) continue;
    for (std::int64_t x = size / 2; x < level_.x;) {  // by the centres of cells
      const std::int64_t begin = x;
      while (x < level_.x && row[x] == row[begin]) x += size;
      Append(row[begin], step,
             {static_cast<std::uint32_t>(z), CellOf(y, kSteps[step]), CellOf(begin, kSteps[step]),
              static_cast<std::uint32_t>((x - begin) / size)});
    }
  }
}

plan::PositionIndex PositionBuilder::Finish(const std::array<std::uint64_t, 256>& pixels) {
  plan::PositionIndex index;
  index.size = level_;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    Cells& cells = classes_[i];
    std::size_t best = kSteps.size();
    for (std::size_t step = kSteps.size(); step-- > 0;) {
      if (cells.is_full[step] || cells.sets[step].empty()) continue;
      if (kSteps[step] >= finest_step_ || best == kSteps.size()) best = step;
    }
    if (best == kSteps.size()) best = 0;  // nothing, or the beginning of what is everywhere
    index.classes.push_back(
        {values_[i], cells.name, pixels[values_[i]], std::move(cells.sets[best])});
  }
  return index;
}

}  // namespace patchbay::workers
