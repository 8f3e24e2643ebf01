#include "workers/jobs/labels/components.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace patchbay::workers {
namespace {

constexpr std::size_t kRunsAtOnce = std::size_t{1} << 20;  ///< between two calls of progress

/// Classes that are indexed, by value; ignored ones left out.
std::vector<plan::LabelClass> ByValue(const plan::ClassTable& table) {
  std::vector<plan::LabelClass> classes = table.classes;
  std::erase_if(classes, [](const auto& one) { return one.value == plan::kIgnoreClass; });
  std::sort(classes.begin(), classes.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  return classes;
}

struct Run {
  plan::CellRun cells;
  std::uint8_t value = 0;
};

/// Runs in row order, and where each row of the volume begins among them.
class Runs {
 public:
  explicit Runs(const Extent& size) : size_(size) {}

  Status Find(std::span<const std::uint8_t> voxels, const std::array<bool, 256>& is_class,
              const VolumeProgress& progress) {
    const std::uint8_t* row = voxels.data();
    for (std::int64_t z = 0; z < size_.z; ++z) {
      for (std::int64_t y = 0; y < size_.y; ++y, row += size_.x) {
        begins_.push_back(runs_.size());
        AddRow(row, static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(y), is_class);
      }
      if (progress) PB_RETURN_IF_ERROR(progress());
    }
    begins_.push_back(runs_.size());
    for (std::size_t i = 0; i < runs_.size(); ++i) parent_.push_back(i);
    return absl::OkStatus();
  }

  const std::vector<Run>& all() const { return runs_; }

  /// Joins every run with those of its value that touch it.
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
  void AddRow(const std::uint8_t* row, std::uint32_t z, std::uint32_t y,
              const std::array<bool, 256>& is_class) {
    for (std::int64_t x = 0; x < size_.x;) {
      std::int64_t end = x + 1;
      while (end < size_.x && row[end] == row[x]) ++end;
      if (is_class[row[x]]) {
        runs_.push_back(
            {{z, y, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(end - x)}, row[x]});
      }
      x = end;
    }
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

}  // namespace

StatusOr<plan::ComponentIndex> FindComponents(const plan::ClassTable& classes,
                                              std::span<const std::uint8_t> voxels,
                                              const Extent& size, const VolumeProgress& progress) {
  plan::ComponentIndex index;
  index.size = size;
  std::array<bool, 256> is_class{};
  std::array<std::size_t, 256> place{};
  for (const plan::LabelClass& one : ByValue(classes)) {
    const auto value = static_cast<std::size_t>(one.value);
    is_class[value] = true;
    place[value] = index.classes.size();
    index.classes.push_back({static_cast<std::uint8_t>(one.value), one.name, true, {}});
  }
  Runs runs(size);
  PB_RETURN_IF_ERROR(runs.Find(voxels, is_class, progress));
  PB_RETURN_IF_ERROR(runs.Join(progress));
  std::vector<std::size_t> number(runs.all().size());  // of a component, where a run is its first
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
    // Row order holds within a component, so only kMaxRuns can refuse.
    own.is_indexed = own.components.size() <= plan::kMaxComponents &&
                     own.components[number[root]].Append(run.cells).ok();
    if (!own.is_indexed) own.components.clear();
  }
  return index;
}

}  // namespace patchbay::workers
