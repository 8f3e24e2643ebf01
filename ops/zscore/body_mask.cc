#include "ops/zscore/body_mask.h"

#include <algorithm>
#include <cstddef>

namespace patchbay::ops {
namespace {

using Mask = std::vector<std::uint8_t>;

/// A voxel and its six neighbours: the least of them (erosion) or the most (dilation). Outside: 0.
template <typename Pick>
StatusOr<Mask> OverBall(const Mask& in, const Extent& size, const SliceDone& done, Pick pick) {
  Mask out(in.size());
  const std::int64_t row = size.x, slice = size.x * size.y;
  std::size_t i = 0;
  for (std::int64_t z = 0; z < size.z; ++z) {
    for (std::int64_t y = 0; y < size.y; ++y) {
      for (std::int64_t x = 0; x < size.x; ++x, ++i) {
        const auto at = [&](bool inside, std::int64_t offset) -> std::uint8_t {
          return inside ? in[static_cast<std::size_t>(static_cast<std::int64_t>(i) + offset)] : 0;
        };
        const std::uint8_t along_x = pick(at(x > 0, -1), at(x + 1 < size.x, 1));
        const std::uint8_t along_y = pick(at(y > 0, -row), at(y + 1 < size.y, row));
        const std::uint8_t along_z = pick(at(z > 0, -slice), at(z + 1 < size.z, slice));
        out[i] = pick(pick(in[i], along_x), pick(along_y, along_z));
      }
    }
    if (done) PB_RETURN_IF_ERROR(done());
  }
  return out;
}

/// Voxels of a row that touch. There may be half as many as voxels, of which there are 2^31.
struct Run {
  std::uint32_t begin = 0, end = 0;  ///< columns
  std::uint32_t parent = 0;  ///< a run of the same piece; the first run of a piece is its root
  std::uint32_t voxels = 0;  ///< voxels of the piece, at its root
};
static_assert(sizeof(Run) == 16, "as the header says");

std::uint32_t RootOf(std::vector<Run>& runs, std::uint32_t run) {
  while (runs[run].parent != run) run = runs[run].parent = runs[runs[run].parent].parent;
  return run;
}

/// The runs of every row, and where each row's begin.
struct Runs {
  std::vector<Run> runs;
  std::vector<std::size_t> row;
};

std::size_t CountRuns(const Mask& mask, const Extent& size) {
  std::size_t count = 0;
  const std::uint8_t* row = mask.data();
  for (std::int64_t i = 0; i < size.z * size.y; ++i, row += size.x) {
    for (std::int64_t x = 0; x < size.x; ++x) {
      count += row[x] != 0 && (x == 0 || row[x - 1] == 0) ? 1 : 0;
    }
  }
  return count;
}

/// The runs of a mask; `count` is their number.
Runs RunsOf(const Mask& mask, const Extent& size, std::size_t count) {
  Runs found;
  found.runs.reserve(count);
  found.row.reserve(static_cast<std::size_t>(size.z * size.y) + 1);
  const std::uint8_t* row = mask.data();
  for (std::int64_t i = 0; i < size.z * size.y; ++i, row += size.x) {
    found.row.push_back(found.runs.size());
    for (std::int64_t x = 0; x < size.x; ++x) {
      if (row[x] == 0) continue;
      const auto column = static_cast<std::uint32_t>(x);
      if (x == 0 || row[x - 1] == 0) {
        found.runs.push_back({column, column, static_cast<std::uint32_t>(found.runs.size()), 0});
      }
      found.runs.back().end = column + 1;
    }
  }
  found.row.push_back(found.runs.size());
  return found;
}

/// Joins the runs of two rows that overlap.
void JoinRows(Runs& all, std::int64_t one, std::int64_t other) {
  std::vector<Run>& runs = all.runs;
  std::size_t a = all.row[static_cast<std::size_t>(one)];
  std::size_t b = all.row[static_cast<std::size_t>(other)];
  const std::size_t a_end = all.row[static_cast<std::size_t>(one) + 1];
  const std::size_t b_end = all.row[static_cast<std::size_t>(other) + 1];
  while (a < a_end && b < b_end) {
    if (runs[a].begin < runs[b].end && runs[b].begin < runs[a].end) {
      const std::uint32_t p = RootOf(runs, static_cast<std::uint32_t>(a));
      const std::uint32_t q = RootOf(runs, static_cast<std::uint32_t>(b));
      runs[std::max(p, q)].parent = std::min(p, q);
    }
    runs[a].end < runs[b].end ? ++a : ++b;
  }
}

/// Leaves the largest 6-connected piece; of equal ones that with the first voxel.
Status KeepLargest(Mask& mask, const Extent& size, std::size_t count, const SliceDone& done) {
  Runs all = RunsOf(mask, size, count);
  std::vector<Run>& runs = all.runs;
  for (std::int64_t i = 0; i < size.z * size.y; ++i) {
    if (i % size.y > 0) JoinRows(all, i, i - 1);
    if (i >= size.y) JoinRows(all, i, i - size.y);
    if (done && i % size.y == 0) PB_RETURN_IF_ERROR(done());
  }
  std::uint32_t largest = 0;
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    runs[RootOf(runs, i)].voxels += runs[i].end - runs[i].begin;
  }
  for (std::uint32_t i = 0; i < runs.size(); ++i) {
    if (runs[i].voxels > runs[largest].voxels) largest = i;
  }
  std::fill(mask.begin(), mask.end(), std::uint8_t{0});
  for (std::int64_t i = 0; i < size.z * size.y; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (std::size_t k = all.row[row]; k < all.row[row + 1]; ++k) {
      if (RootOf(runs, static_cast<std::uint32_t>(k)) != largest) continue;
      std::fill(mask.begin() + i * size.x + runs[k].begin, mask.begin() + i * size.x + runs[k].end,
                std::uint8_t{1});
    }
  }
  return absl::OkStatus();
}

/// Fills the holes of a slice: pixels not 4-connected to its border through air are inside.
void FillSlice(std::uint8_t* slice, std::int64_t height, std::int64_t width, Mask& outside,
               std::vector<std::int64_t>& open) {
  outside.assign(static_cast<std::size_t>(height * width), 0);
  const auto reach = [&](std::int64_t at) {
    if (slice[at] != 0 || outside[static_cast<std::size_t>(at)] != 0) return;
    outside[static_cast<std::size_t>(at)] = 1;
    open.push_back(at);
  };
  for (std::int64_t y = 0; y < height; ++y) {
    const bool whole_row = y == 0 || y == height - 1;
    for (std::int64_t x = 0; x < width; x += whole_row || width == 1 ? 1 : width - 1) {
      reach(y * width + x);
    }
  }
  while (!open.empty()) {
    const std::int64_t at = open.back(), x = at % width;
    open.pop_back();
    if (x > 0) reach(at - 1);
    if (x + 1 < width) reach(at + 1);
    if (at >= width) reach(at - width);
    if (at + width < height * width) reach(at + width);
  }
  for (std::int64_t i = 0; i < height * width; ++i) {
    slice[i] = outside[static_cast<std::size_t>(i)] == 0 ? 1 : 0;
  }
}

}  // namespace

StatusOr<std::vector<std::uint8_t>> BodyMask(std::span<const std::int16_t> hu, const Extent& size,
                                             const MayTakeMemory& may_take,
                                             const SliceDone& slice_done) {
  const auto least = [](std::uint8_t a, std::uint8_t b) { return std::min(a, b); };
  const auto most = [](std::uint8_t a, std::uint8_t b) { return std::max(a, b); };
  if (may_take) PB_RETURN_IF_ERROR(may_take(3 * hu.size()));
  Mask mask(hu.size());
  std::transform(hu.begin(), hu.end(), mask.begin(),
                 [](std::int16_t v) { return static_cast<std::uint8_t>(v > kBodyAboveHu); });
  PB_ASSIGN_OR_RETURN(mask, OverBall(mask, size, slice_done, least));
  PB_ASSIGN_OR_RETURN(mask, OverBall(mask, size, slice_done, most));
  if (mask.empty()) return mask;
  const std::size_t runs = CountRuns(mask, size);
  const auto slice = static_cast<std::size_t>(size.y * size.x);
  const auto rows = static_cast<std::size_t>(size.z * size.y) + 1;
  if (may_take) {
    PB_RETURN_IF_ERROR(may_take(std::max(runs * sizeof(Run) + rows * sizeof(std::size_t),
                                         slice * (1 + sizeof(std::int64_t)))));
  }
  PB_RETURN_IF_ERROR(KeepLargest(mask, size, runs, slice_done));
  Mask outside;
  std::vector<std::int64_t> open;
  for (std::int64_t z = 0; z < size.z; ++z) {
    FillSlice(mask.data() + z * size.y * size.x, size.y, size.x, outside, open);
    if (slice_done) PB_RETURN_IF_ERROR(slice_done());
  }
  return mask;
}

}  // namespace patchbay::ops
