#include "workers/annotations/crossings.h"

#include <algorithm>
#include <vector>

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxPairs = 20'000'000;

struct Edge {
  Vertex a, b;  ///< a.y <= b.y
  double left, right;
};

double Side(const Vertex& a, const Vertex& b, const Vertex& p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

bool Cross(const Edge& e, const Edge& f) {
  const double a = Side(e.a, e.b, f.a), b = Side(e.a, e.b, f.b);
  const double c = Side(f.a, f.b, e.a), d = Side(f.a, f.b, e.b);
  return ((a > 0 && b < 0) || (a < 0 && b > 0)) && ((c > 0 && d < 0) || (c < 0 && d > 0));
}

std::vector<Edge> EdgesOf(const Polygon& polygon) {
  std::vector<Edge> edges;
  for (const Ring& ring : polygon.rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) {
      Vertex a = ring[i], b = ring[(i + 1) % ring.size()];
      if (a.y > b.y) std::swap(a, b);
      edges.push_back({a, b, std::min(a.x, b.x), std::max(a.x, b.x)});
    }
  }
  return edges;
}

}  // namespace

/// From top to bottom, with the edges that the line of sight meets.
std::optional<bool> CrossesItself(const Polygon& polygon) {
  std::vector<Edge> edges = EdgesOf(polygon);
  std::sort(edges.begin(), edges.end(), [](const Edge& e, const Edge& f) { return e.a.y < f.a.y; });
  std::vector<const Edge*> active;
  std::int64_t pairs = 0;
  for (const Edge& edge : edges) {
    std::erase_if(active, [&](const Edge* other) { return other->b.y < edge.a.y; });
    pairs += static_cast<std::int64_t>(active.size());
    if (pairs > kMaxPairs) return std::nullopt;
    for (const Edge* other : active) {
      const bool is_beside = other->right < edge.left || edge.right < other->left;
      if (!is_beside && Cross(edge, *other)) return true;
    }
    active.push_back(&edge);
  }
  return false;
}

}  // namespace patchbay::workers
