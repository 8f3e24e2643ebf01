// Vertices go in the order of the triangle that each cuts off with its neighbours, the smallest
// first (Visvalingam and Whyatt). A vertex stays while another lies in its triangle: then its two
// edges, and the one that would replace them, have nothing between them that could be crossed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "workers/annotations/outline_tracer.h"

namespace patchbay::workers {
namespace {

/// Vertices that one straight line may stand for, so that the work stays linear.
constexpr std::size_t kMostTogether = 1024;
/// Side of the cells, in pixels, in which vertices are looked for.
constexpr double kCell = 16;

double DistanceToLine(const Vertex& a, const Vertex& b, const Vertex& p) {
  const double x = b.x - a.x, y = b.y - a.y, length = x * x + y * y;
  const double along =
      length > 0 ? std::clamp(((p.x - a.x) * x + (p.y - a.y) * y) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - a.x - along * x, p.y - a.y - along * y);
}

/// Within the triangle or on its edges.
bool IsIn(const Vertex& a, const Vertex& b, const Vertex& c, const Vertex& p) {
  const double sides[] = {SideOf(a, b, p), SideOf(b, c, p), SideOf(c, a, p)};
  const bool is_left = std::any_of(sides, sides + 3, [](double s) { return s > 0; });
  const bool is_right = std::any_of(sides, sides + 3, [](double s) { return s < 0; });
  return !(is_left && is_right);
}

std::int64_t CellOf(double at) { return static_cast<std::int64_t>(std::floor(at / kCell)); }

class Straightener {
 public:
  Straightener(const TracedPolygon& polygon, double tolerance) : tolerance_(tolerance) {
    for (const Ring& ring : polygon.rings) {
      const std::size_t first = nodes_.size(), count = ring.size();
      for (std::size_t i = 0; i < count; ++i) {
        nodes_.push_back({ring[i], first + (i + count - 1) % count, first + (i + 1) % count, first,
                          counts_.size()});
        cells_[KeyOf(ring[i])].push_back(first + i);
      }
      counts_.push_back(count);
    }
  }

  void Run() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) Enqueue(i);
    while (!queue_.empty()) {
      const std::size_t i = queue_.begin()->second;
      queue_.erase(queue_.begin());
      nodes_[i].is_queued = false;
      if (MayGo(i)) TakeOut(i);
    }
  }

  void PutInto(TracedPolygon& polygon) const {
    std::size_t at = 0;
    for (Ring& ring : polygon.rings) {
      const std::size_t end = at + ring.size();
      ring.clear();
      for (; at < end; ++at) {
        if (!nodes_[at].is_gone) ring.push_back(nodes_[at].vertex);
      }
    }
  }

 private:
  struct Node {
    Vertex vertex;
    std::size_t before, after;  ///< neighbours that are left
    std::size_t first, ring;    ///< index of the ring's first vertex, and of the ring
    bool is_gone = false, is_queued = false;
    double area = 0;  ///< in the queue
  };

  static std::uint64_t KeyOf(std::int64_t x, std::int64_t y) {
    return static_cast<std::uint64_t>(x) << 32 ^ static_cast<std::uint32_t>(y);
  }
  static std::uint64_t KeyOf(const Vertex& v) { return KeyOf(CellOf(v.x), CellOf(v.y)); }

  void Enqueue(std::size_t i) {
    Node& node = nodes_[i];
    if (node.is_queued) queue_.erase({node.area, i});
    node.area =
        std::abs(SideOf(nodes_[node.before].vertex, node.vertex, nodes_[node.after].vertex)) / 2;
    node.is_queued = true;
    queue_.emplace(node.area, i);
  }

  bool MayGo(std::size_t i) const {
    const Node& node = nodes_[i];
    return counts_[node.ring] > 3 && IsNear(node) && IsAlone(i);
  }

  /// All vertices between its neighbours, gone or not, are near enough to the line between those.
  bool IsNear(const Node& node) const {
    const Vertex &a = nodes_[node.before].vertex, &b = nodes_[node.after].vertex;
    if (DistanceToLine(a, b, node.vertex) > tolerance_) return false;
    std::size_t seen = 0;
    for (std::size_t i = Next(node.before); i != node.after; i = Next(i)) {
      if (++seen > kMostTogether || DistanceToLine(a, b, nodes_[i].vertex) > tolerance_) {
        return false;
      }
    }
    return true;
  }

  /// The vertex after it in the ring as it was traced.
  std::size_t Next(std::size_t i) const {
    const bool is_last = i + 1 == nodes_.size() || nodes_[i + 1].ring != nodes_[i].ring;
    return is_last ? nodes_[i].first : i + 1;
  }

  /// No other vertex lies in its triangle.
  bool IsAlone(std::size_t i) const {
    const Node& node = nodes_[i];
    const Vertex &a = nodes_[node.before].vertex, &b = node.vertex, &c = nodes_[node.after].vertex;
    const auto [left, right] = std::minmax({a.x, b.x, c.x});
    const auto [top, bottom] = std::minmax({a.y, b.y, c.y});
    for (std::int64_t y = CellOf(top); y <= CellOf(bottom); ++y) {
      for (std::int64_t x = CellOf(left); x <= CellOf(right); ++x) {
        const auto cell = cells_.find(KeyOf(x, y));
        if (cell == cells_.end()) continue;
        for (const std::size_t other : cell->second) {
          const bool is_own = other == i || other == node.before || other == node.after;
          if (!is_own && IsIn(a, b, c, nodes_[other].vertex)) return false;
        }
      }
    }
    return true;
  }

  void TakeOut(std::size_t i) {
    Node& node = nodes_[i];
    node.is_gone = true;
    --counts_[node.ring];
    std::erase(cells_[KeyOf(node.vertex)], i);
    nodes_[node.before].after = node.after;
    nodes_[node.after].before = node.before;
    Enqueue(node.before);
    Enqueue(node.after);
  }

  const double tolerance_;
  std::vector<Node> nodes_;          ///< ring after ring
  std::vector<std::size_t> counts_;  ///< vertices left of each ring
  absl::flat_hash_map<std::uint64_t, std::vector<std::size_t>> cells_;
  std::set<std::pair<double, std::size_t>> queue_;
};

}  // namespace

void Straighten(TracedPolygon& polygon, double tolerance) {
  Straightener straightener(polygon, tolerance);
  straightener.Run();
  straightener.PutInto(polygon);
}

}  // namespace patchbay::workers
