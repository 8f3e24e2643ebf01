// Where each class of a label image lies, collected while the image is made.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/format/zarr/downsample.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/positions/position_index.h"

namespace patchbay::workers {

/// Collects for each class the cells of several steps, and keeps those of the finest step with few
/// enough runs: a class of few pixels is kept pixel by pixel.
class PositionBuilder {
 public:
  /// Cells finer than `finest_step` pixels are kept only where there are no coarser ones.
  PositionBuilder(const plan::ClassTable& classes, const Extent& level,
                  std::uint32_t finest_step = 1);

  /// A row of chunks of level 0, `side` pixels a side; rows in order.
  void AddRow(std::int64_t row, std::int64_t side, const std::vector<zarr::LabelCell>& cells);

  /// A row of voxels of a volume's level 0, level.x of them from (z, y, 0) on; rows in order.
  void AddVoxels(std::int64_t z, std::int64_t y, const std::uint8_t* row);

  /// `pixels` of level 0, by value.
  plan::PositionIndex Finish(const std::array<std::uint64_t, 256>& pixels);

 private:
  static constexpr std::array<std::uint32_t, 5> kSteps = {1, 4, 16, 64, 256};

  /// The cells of one class.
  struct Cells {
    std::string name;
    std::vector<plan::CellSet> sets;            ///< by kSteps
    std::array<bool, kSteps.size()> is_full{};  ///< more runs than are kept
  };

  void AddLine(std::int64_t y, std::size_t step, std::int64_t side,
               const std::vector<zarr::LabelCell>& cells);
  void Append(std::uint8_t value, std::size_t step, const plan::CellRun& run);

  Extent level_;
  std::uint32_t finest_step_;
  std::array<int, 256> class_of_{};  ///< index in classes_, -1 where a value is none
  std::vector<Cells> classes_;
  std::vector<std::uint8_t> values_;  ///< values of classes_
};

}  // namespace patchbay::workers
