// A set of pixels on a lattice over one image, as sorted runs: which places of the image are
// tissue, or of a class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"

namespace patchbay::plan {

/// Cells (z, y, x) to (z, y, x + count - 1).
struct CellRun {
  std::uint32_t z = 0, y = 0, x = 0;
  std::uint32_t count = 0;

  bool operator==(const CellRun&) const = default;
};

/// The pixel at the centre of a cell of `step` pixels, along one axis: with a step of 1 the cell.
constexpr std::int64_t CentreOf(std::int64_t cell, std::int64_t step) {
  return cell * step + step / 2;
}

/// Cells of `step` x `step` pixels of a plane from the image's origin; planes have no step. A cell
/// stands for the pixel at its centre. Value; grows in row order only.
class CellSet {
 public:
  static constexpr std::size_t kMaxRuns = std::size_t{1} << 23;
  static constexpr std::uint32_t kMaxStep = 1u << 16;

  /// `step` is a power of two; larger means fewer cells, and places further apart.
  explicit CellSet(std::uint32_t step = 1) : step_(step) {}

  /// Appends a run after all others; a run that continues the last one is merged into it.
  /// InvalidArgument for an empty run, for one that is not after the others, and for one too many.
  Status Append(const CellRun& run);

  std::uint32_t step() const { return step_; }
  const std::vector<CellRun>& runs() const { return runs_; }
  /// Cells, and the pixels of a plane that they stand for.
  std::uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  std::uint64_t Pixels() const { return size() * step_ * step_; }
  bool empty() const { return runs_.empty(); }

  /// Cell `n` in row order, n < size(). Logarithmic in the runs.
  Point Cell(std::uint64_t n) const;
  bool Contains(const Point& cell) const;

  /// Everything in `a` or `b`: parts of one image that were indexed apart. InvalidArgument when the
  /// steps differ.
  static StatusOr<CellSet> Union(const CellSet& a, const CellSet& b);

  /// Bytes that the set keeps.
  std::size_t MemoryBytes() const;

  /// Appends the set to `out`: a few bytes per run.
  void EncodeTo(std::string& out) const;
  /// Reads a set from the front of `text`, and removes it there. InvalidArgument for anything else,
  /// and for a cell whose centre lies outside an image of `size` pixels.
  static StatusOr<CellSet> DecodeFrom(std::string_view& text, const Extent& size);

  bool operator==(const CellSet& other) const {
    return step_ == other.step_ && runs_ == other.runs_;
  }

 private:
  /// Cells whose centres lie in the first `pixels` of a row or a column.
  std::int64_t CentresAlong(std::int64_t pixels) const;
  void TakeShortRuns(std::string_view& text, std::size_t most, const Extent& inside);

  std::uint32_t step_;
  std::vector<CellRun> runs_;
  std::vector<std::uint64_t> ends_;  ///< cells up to the end of each run
};

}  // namespace patchbay::plan
