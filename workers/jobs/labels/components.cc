#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/core/runs.h"
#include "workers/jobs/labels/volume_import.h"

namespace patchbay::workers {
namespace {

constexpr std::size_t kRunsAtOnce = std::size_t{1} << 20;  ///< between two calls of progress

/// Bytes per run while components are found: the run, its parent and number, and its copy in a
/// CellSet that has grown by doubling.
constexpr std::uint64_t kBytesPerRun = 20 + 8 + 8 + 2 * 24;

/// Classes that are indexed, by value; ignored ones left out.
std::vector<plan::LabelClass> IndexedClasses(const plan::ClassTable& table) {
  std::vector<plan::LabelClass> classes = table.classes;
  std::erase_if(classes, [](const auto& one) { return one.value == plan::kIgnoreClass; });
  std::sort(classes.begin(), classes.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  return classes;
}

/// Calls visit(x, end, value) for every run of equal values of a row.
template <typename Visit>
void ForEachRun(std::span<const std::uint8_t> row, const Visit& visit) {
  for (std::size_t x = 0; x < row.size();) {
    const auto left = static_cast<std::int64_t>(row.size() - x);
    const std::size_t end = x + static_cast<std::size_t>(RunLength(row.data() + x, left));
    visit(x, end, row[x]);
    x = end;
  }
}

/// How many runs every value has.
StatusOr<std::array<std::uint64_t, 256>> CountRuns(std::span<const std::uint8_t> voxels,
                                                   const Extent& size,
                                                   const VolumeProgress& progress) {
  std::array<std::uint64_t, 256> counts{};
  const auto width = static_cast<std::size_t>(size.x);
  for (std::int64_t z = 0; z < size.z; ++z) {
    for (std::int64_t y = 0; y < size.y; ++y, voxels = voxels.subspan(width)) {
      ForEachRun(voxels.first(width),
                 [&](std::size_t, std::size_t, std::uint8_t value) { ++counts[value]; });
    }
    if (progress) PB_RETURN_IF_ERROR(progress());
  }
  return counts;
}

struct Run {
  plan::CellRun cells;
  std::uint8_t value = 0;
};

/// Runs in row order, and where each row of the volume begins among them.
class Runs {
 public:
  Runs(const Extent& size, std::uint64_t count) : size_(size) {
    runs_.reserve(static_cast<std::size_t>(count));
  }

  Status Find(std::span<const std::uint8_t> voxels, const std::array<bool, 256>& is_class,
              const VolumeProgress& progress) {
    const auto width = static_cast<std::size_t>(size_.x);
    for (std::int64_t z = 0; z < size_.z; ++z) {
      for (std::int64_t y = 0; y < size_.y; ++y, voxels = voxels.subspan(width)) {
        begins_.push_back(runs_.size());
        AddRow(voxels.first(width), {z, y, 0}, is_class);
      }
      if (progress) PB_RETURN_IF_ERROR(progress());
    }
    begins_.push_back(runs_.size());
    parent_.resize(runs_.size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    return absl::OkStatus();
  }

  const std::vector<Run>& all() const { return runs_; }

  /// Joins every run with touching runs of the same value.
  Status Join(const VolumeProgress& progress) {
    for (std::int64_t z = 0; z < size_.z; ++z) {
      for (std::int64_t y = 0; y < size_.y; ++y) {
        if (y > 0) JoinRows({z, y, 0}, {z, y - 1, 0});
        for (std::int64_t above = std::max<std::int64_t>(0, y - 1);
             z > 0 && above <= std::min(size_.y - 1, y + 1); ++above) {
          JoinRows({z, y, 0}, {z - 1, above, 0});
        }
      }
      if (progress) PB_RETURN_IF_ERROR(progress());
    }
    return absl::OkStatus();
  }

  /// The first run of a run's component, in row order.
  std::size_t RootOf(std::size_t run) {
    while (parent_[run] != run) run = parent_[run] = parent_[parent_[run]];
    return run;
  }

 private:
  void AddRow(std::span<const std::uint8_t> row, const Point& at,
              const std::array<bool, 256>& is_class) {
    ForEachRun(row, [&](std::size_t x, std::size_t end, std::uint8_t value) {
      if (!is_class[value]) return;
      const plan::CellRun cells{static_cast<std::uint32_t>(at.z), static_cast<std::uint32_t>(at.y),
                                static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(end - x)};
      runs_.push_back({cells, value});
    });
  }

  std::size_t BeginOf(const Point& row) const {
    return begins_[static_cast<std::size_t>(row.z * size_.y + row.y)];
  }
  std::size_t EndOf(const Point& row) const {
    return begins_[static_cast<std::size_t>(row.z * size_.y + row.y) + 1];
  }

  /// Both rows are sorted, so each is gone through once.
  void JoinRows(const Point& row, const Point& other) {
    std::size_t a = BeginOf(row), b = BeginOf(other);
    while (a < EndOf(row) && b < EndOf(other)) {
      const plan::CellRun &mine = runs_[a].cells, &theirs = runs_[b].cells;
      const std::uint32_t my_end = mine.x + mine.count, their_end = theirs.x + theirs.count;
      const bool touch = mine.x <= their_end && theirs.x <= my_end;
      if (touch && runs_[a].value == runs_[b].value) JoinRuns(a, b);
      if (my_end < their_end) {
        ++a;
        continue;
      }
      // Where both end at once, the next of this row touches theirs by a corner.
      const bool corner = my_end == their_end && a + 1 < EndOf(row) &&
                          runs_[a + 1].cells.x == my_end && runs_[a + 1].value == runs_[b].value;
      if (corner) JoinRuns(a + 1, b);
      ++b;
    }
  }

  void JoinRuns(std::size_t a, std::size_t b) {
    a = RootOf(a);
    b = RootOf(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

  Extent size_;
  std::vector<Run> runs_;
  std::vector<std::size_t> begins_, parent_;
};

/// Sorts the runs of each class into its components.
Status Collect(Runs& runs, const std::array<std::size_t, 256>& place,
               const VolumeProgress& progress, plan::ComponentIndex& index) {
  std::vector<std::size_t> number(runs.all().size());  // number of a component, at its first run
  for (std::size_t i = 0; i < runs.all().size(); ++i) {
    if (progress && i % kRunsAtOnce == 0) PB_RETURN_IF_ERROR(progress());
    const Run& run = runs.all()[i];
    plan::ClassComponents& own = index.classes[place[run.value]];
    if (!own.is_indexed) continue;
    const std::size_t root = runs.RootOf(i);
    if (root == i) {
      number[i] = own.components.size();
      own.components.emplace_back(1);
    }
    own.is_indexed = own.components.size() <= plan::kMaxComponents;
    // Row order holds within a component, and the class has few enough runs.
    if (own.is_indexed) PB_RETURN_IF_ERROR(own.components[number[root]].Append(run.cells));
    if (!own.is_indexed) own.components.clear();
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<plan::ComponentIndex> FindComponents(const plan::ClassTable& classes,
                                              std::span<const std::uint8_t> voxels,
                                              const Extent& size, const MemoryBudget& room,
                                              const VolumeProgress& progress) {
  PB_ASSIGN_OR_RETURN(const auto counts, CountRuns(voxels, size, progress));
  plan::ComponentIndex index;
  index.size = size;
  std::array<bool, 256> is_class{};
  std::array<std::size_t, 256> place{};
  std::uint64_t count = 0;
  for (const plan::LabelClass& one : IndexedClasses(classes)) {
    const auto value = static_cast<std::size_t>(one.value);
    is_class[value] = counts[value] <= plan::kMaxComponentRuns;
    count += is_class[value] ? counts[value] : 0;
    place[value] = index.classes.size();
    index.classes.push_back({static_cast<std::uint8_t>(one.value), one.name, is_class[value], {}});
  }
  PB_RETURN_IF_ERROR(CheckMemoryFits("find components", count * kBytesPerRun, room));
  Runs runs(size, count);
  PB_RETURN_IF_ERROR(runs.Find(voxels, is_class, progress));
  PB_RETURN_IF_ERROR(runs.Join(progress));
  PB_RETURN_IF_ERROR(Collect(runs, place, progress, index));
  return index;
}

}  // namespace patchbay::workers
