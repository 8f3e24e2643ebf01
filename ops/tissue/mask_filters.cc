#include "ops/tissue/mask_filters.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace patchbay::ops {
namespace {

using Index = std::size_t;

constexpr std::int64_t kLanes = 32;
using Lanes = std::uint8_t __attribute__((vector_size(kLanes)));

Lanes LoadLanes(const std::uint8_t* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, kLanes);
  return lanes;
}

Lanes EveryLane(std::uint8_t value) {
  Lanes lanes;
  std::memset(&lanes, value, kLanes);
  return lanes;
}

/// `image` with `radius` more pixels on every side that repeat its edge, and room for whole vectors
/// at the end of each row.
ByteImage Widened(const ByteImage& image, std::int64_t radius) {
  const std::int64_t whole = (image.width + kLanes - 1) / kLanes * kLanes;
  ByteImage wide{image.height + 2 * radius, whole + 2 * radius, {}};
  wide.pixels.resize(static_cast<Index>(wide.height * wide.width));
  for (std::int64_t y = 0; y < wide.height; ++y) {
    const std::uint8_t* from = image.Row(std::clamp<std::int64_t>(y - radius, 0, image.height - 1));
    std::uint8_t* to = wide.Row(y);
    std::fill_n(to, radius, from[0]);
    std::copy_n(from, image.width, to + radius);
    std::fill(to + radius + image.width, to + wide.width, from[image.width - 1]);
  }
  return wide;
}

/// The medians of kLanes neighbouring k x k windows, the first at `corner`. Bit by bit from the
/// top: a bit is set where at least half of the window is not below the value it would make.
Lanes MedianLanes(const std::uint8_t* corner, std::int64_t row_bytes, int k) {
  const Lanes zero = {}, half = EveryLane(static_cast<std::uint8_t>((k * k + 1) / 2));
  Lanes median = zero;
  for (int bit = 7; bit >= 0; --bit) {
    const Lanes candidate = median | EveryLane(static_cast<std::uint8_t>(1 << bit));
    Lanes reached = zero;
    for (int dy = 0; dy < k; ++dy) {
      const std::uint8_t* row = corner + dy * row_bytes;
      for (int dx = 0; dx < k; ++dx) {
        // A lane whose comparison holds is -1.
        reached -= reinterpret_cast<Lanes>(LoadLanes(row + dx) >= candidate);
      }
    }
    median = reached >= half ? candidate : median;
  }
  return median;
}

/// Sets every pixel within `radius` of a pixel that is `value`, along rows, to `value`.
void SpreadAlongRows(std::int64_t radius, std::uint8_t value, ByteImage& mask) {
  std::vector<std::uint8_t> before(static_cast<Index>(mask.width));
  const std::int64_t width = mask.width, reach = std::min(radius, width);
  for (std::int64_t y = 0; y < mask.height; ++y) {
    std::uint8_t* row = mask.Row(y);
    std::copy_n(row, width, before.begin());
    const auto is = [&](std::int64_t x) { return before[static_cast<Index>(x)] == value ? 1 : 0; };
    std::int64_t near = 0;
    for (std::int64_t x = 0; x < std::min(reach, width); ++x) near += is(x);
    for (std::int64_t x = 0; x < width; ++x) {
      if (x + reach < width) near += is(x + reach);
      if (x - reach - 1 >= 0) near -= is(x - reach - 1);
      if (near > 0) row[x] = value;
    }
  }
}

/// The same along columns.
void SpreadAlongColumns(std::int64_t radius, std::uint8_t value, ByteImage& mask) {
  const ByteImage before = mask;
  const std::int64_t height = mask.height, width = mask.width, reach = std::min(radius, height);
  std::vector<std::int32_t> near(static_cast<Index>(width));
  const auto count = [&](std::int64_t y, std::int32_t step) {
    const std::uint8_t* row = before.Row(y);
    for (std::int64_t x = 0; x < width; ++x) {
      near[static_cast<Index>(x)] += row[x] == value ? step : 0;
    }
  };
  for (std::int64_t y = 0; y < std::min(reach, height); ++y) count(y, 1);
  for (std::int64_t y = 0; y < height; ++y) {
    if (y + reach < height) count(y + reach, 1);
    if (y - reach - 1 >= 0) count(y - reach - 1, -1);
    std::uint8_t* row = mask.Row(y);
    for (std::int64_t x = 0; x < width; ++x) {
      row[x] = near[static_cast<Index>(x)] > 0 ? value : row[x];
    }
  }
}

/// Neighbouring pixels of one row that have the value looked for; with others that touch it, a
/// component, whose figures its root keeps.
struct Run {
  std::uint32_t begin = 0, end = 0;  ///< columns of the row, `end` excluded
  std::uint32_t parent = 0;
  std::uint32_t pixels = 0;
  bool open = false;  ///< touches the image's edge
};

/// The runs of one value, joined into components.
class Components {
 public:
  /// `reach` is 1 where diagonal pixels are neighbours, else 0.
  Components(const ByteImage& mask, std::uint8_t value, std::uint32_t reach) {
    for (std::int64_t y = 0; y < mask.height; ++y) {
      row_begin_.push_back(runs_.size());
      AddRow(mask, y, value);
      if (y > 0) JoinRow(static_cast<Index>(y), reach);
    }
    row_begin_.push_back(runs_.size());
  }

  /// Sets the pixels of every component for which `choose(root)` holds.
  template <typename Choose>
  void Paint(std::uint8_t value, ByteImage& mask, const Choose& choose) {
    for (std::int64_t y = 0; y < mask.height; ++y) {
      for (Index i = row_begin_[static_cast<Index>(y)]; i < row_begin_[static_cast<Index>(y) + 1];
           ++i) {
        if (!choose(runs_[Root(static_cast<std::uint32_t>(i))])) continue;
        std::fill(mask.Row(y) + runs_[i].begin, mask.Row(y) + runs_[i].end, value);
      }
    }
  }

 private:
  void AddRow(const ByteImage& mask, std::int64_t y, std::uint8_t value) {
    const std::uint8_t* row = mask.Row(y);
    const bool edge_row = y == 0 || y + 1 == mask.height;
    for (std::int64_t x = 0; x < mask.width; ++x) {
      if (row[x] != value) continue;
      const std::int64_t first = x;
      while (x < mask.width && row[x] == value) ++x;
      runs_.push_back({static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(x),
                       static_cast<std::uint32_t>(runs_.size()),
                       static_cast<std::uint32_t>(x - first),
                       edge_row || first == 0 || x == mask.width});
    }
  }

  void JoinRow(Index y, std::uint32_t reach) {
    Index above = row_begin_[y - 1];
    const Index above_end = row_begin_[y];
    for (Index i = row_begin_[y]; i < runs_.size(); ++i) {
      while (above < above_end && runs_[above].end + reach <= runs_[i].begin) ++above;
      for (Index a = above; a < above_end && runs_[a].begin < runs_[i].end + reach; ++a) {
        Join(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(i));
      }
    }
  }

  std::uint32_t Root(std::uint32_t run) {
    while (runs_[run].parent != run) {
      runs_[run].parent = runs_[runs_[run].parent].parent;
      run = runs_[run].parent;
    }
    return run;
  }

  void Join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = std::min(Root(a), Root(b)), second = std::max(Root(a), Root(b));
    if (first == second) return;
    runs_[second].parent = first;
    runs_[first].pixels += runs_[second].pixels;
    runs_[first].open = runs_[first].open || runs_[second].open;
  }

  std::vector<Run> runs_;
  std::vector<Index> row_begin_;
};

}  // namespace

ByteImage MedianOf(const ByteImage& image, int k) {
  if (k == 1) return image;
  const ByteImage wide = Widened(image, k / 2);
  ByteImage medians{image.height, image.width, {}};
  medians.pixels.resize(image.pixels.size());
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; x += kLanes) {
      const Lanes lanes = MedianLanes(wide.Row(y) + x, wide.width, k);
      std::memcpy(medians.Row(y) + x, &lanes,
                  static_cast<Index>(std::min(kLanes, image.width - x)));
    }
  }
  return medians;
}

void GrowMask(std::int64_t radius, ByteImage& mask) {
  SpreadAlongRows(radius, 1, mask);
  SpreadAlongColumns(radius, 1, mask);
}

void CloseMask(std::int64_t radius, ByteImage& mask) {
  if (radius == 0) return;
  for (const std::uint8_t value : {std::uint8_t{1}, std::uint8_t{0}}) {
    SpreadAlongRows(radius, value, mask);
    SpreadAlongColumns(radius, value, mask);
  }
}

void DropSmallComponents(std::int64_t min_pixels, ByteImage& mask) {
  if (min_pixels <= 1) return;
  Components(mask, 1, 1).Paint(0, mask, [&](const Run& root) { return root.pixels < min_pixels; });
}

void FillSmallHoles(std::int64_t max_pixels, ByteImage& mask) {
  if (max_pixels == 0) return;
  Components(mask, 0, 0).Paint(1, mask, [&](const Run& root) {
    return !root.open && root.pixels <= max_pixels;
  });
}

}  // namespace patchbay::ops
