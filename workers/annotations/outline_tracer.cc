#include "workers/annotations/outline_tracer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace patchbay::workers {
namespace {

constexpr std::size_t kMaxTracedSegments = std::size_t{1} << 26;
constexpr std::int64_t kWord = 8;
constexpr unsigned kHalfBits = 28;
constexpr std::uint64_t kHalfMask = (std::uint64_t{1} << kHalfBits) - 1;

/// A class and a point in halves of a pixel.
std::uint64_t KeyOf(std::uint8_t value, std::int64_t x2, std::int64_t y2) {
  return std::uint64_t{value} << (2 * kHalfBits) | static_cast<std::uint64_t>(y2) << kHalfBits |
         static_cast<std::uint64_t>(x2);
}
Vertex PointOf(std::uint64_t key) {
  return {static_cast<double>(key & kHalfMask) / 2,
          static_cast<double>(key >> kHalfBits & kHalfMask) / 2};
}

enum SquareEdge : std::uint8_t { kTop, kRight, kBottom, kLeft };
struct Step {
  SquareEdge from, to;
};

/// Lines through the square between four pixel centres, with the class on the right hand; which of
/// them have it: 1 upper left, 2 upper right, 4 lower right, 8 lower left.
const std::vector<Step>& StepsOf(unsigned which) {
  static const std::array<std::vector<Step>, 16> kSteps = {{
      {},
      {{kTop, kLeft}},
      {{kRight, kTop}},
      {{kRight, kLeft}},
      {{kBottom, kRight}},
      {{kTop, kLeft}, {kBottom, kRight}},
      {{kBottom, kTop}},
      {{kBottom, kLeft}},
      {{kLeft, kBottom}},
      {{kTop, kBottom}},
      {{kRight, kTop}, {kLeft, kBottom}},
      {{kRight, kBottom}},
      {{kLeft, kRight}},
      {{kTop, kRight}},
      {{kLeft, kTop}},
      {},
  }};
  return kSteps[which];
}

std::uint64_t PointOn(SquareEdge edge, std::uint8_t value, std::int64_t x, std::int64_t y) {
  switch (edge) {
    case kTop:
      return KeyOf(value, 2 * x, 2 * y - 1);
    case kRight:
      return KeyOf(value, 2 * x + 1, 2 * y);
    case kBottom:
      return KeyOf(value, 2 * x, 2 * y + 1);
    case kLeft:
      break;
  }
  return KeyOf(value, 2 * x - 1, 2 * y);
}

struct Bounds {
  double left = 1e300, top = 1e300, right = -1e300, bottom = -1e300;
  explicit Bounds(const Ring& ring) {
    for (const Vertex& v : ring) {
      left = std::min(left, v.x), right = std::max(right, v.x);
      top = std::min(top, v.y), bottom = std::max(bottom, v.y);
    }
  }
  bool Has(const Vertex& v) const {
    return v.x >= left && v.x <= right && v.y >= top && v.y <= bottom;
  }
};

/// Each hole to the smallest outline of its class around it.
void AssignHoles(std::vector<std::pair<std::uint8_t, Ring>>& holes,
                 std::vector<TracedPolygon>& polygons) {
  std::vector<Bounds> bounds;
  std::vector<double> areas;
  for (const TracedPolygon& polygon : polygons) {
    bounds.emplace_back(polygon.rings[0]);
    areas.push_back(std::abs(SignedAreaOf(polygon.rings[0])));
  }
  for (auto& [value, hole] : holes) {
    std::size_t best = polygons.size();
    for (std::size_t i = 0; i < polygons.size(); ++i) {
      if (polygons[i].value != value || !bounds[i].Has(hole[0])) continue;
      if (best != polygons.size() && areas[i] >= areas[best]) continue;
      if (Encloses(polygons[i].rings[0], hole[0])) best = i;
    }
    if (best != polygons.size()) polygons[best].rings.push_back(std::move(hole));
  }
}

}  // namespace

double SignedAreaOf(const Ring& ring) {
  double sum = 0;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Vertex &a = ring[i], &b = ring[(i + 1) % ring.size()];
    sum += a.x * b.y - b.x * a.y;
  }
  return sum / 2;
}

bool Encloses(const Ring& ring, const Vertex& p) {
  bool inside = false;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const Vertex &a = ring[i], &b = ring[(i + 1) % ring.size()];
    if ((a.y > p.y) == (b.y > p.y)) continue;
    if (p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
  }
  return inside;
}

double AreaOf(const TracedPolygon& polygon) {
  double area = 0;
  for (const Ring& ring : polygon.rings) area += SignedAreaOf(ring);
  return area;
}

OutlineTracer::OutlineTracer(std::int64_t width, std::uint8_t ignored)
    : width_(width),
      ignored_(ignored),
      above_(static_cast<std::size_t>(width + 2 + kWord), ignored),
      below_(above_) {}

void OutlineTracer::AddSegments(std::int64_t x, std::uint8_t value, unsigned which) {
  for (const Step& step : StepsOf(which)) {
    next_[PointOn(step.from, value, x, y_)] = PointOn(step.to, value, x, y_);
  }
}

/// The corner between pixels x - 1 and x of both rows.
void OutlineTracer::AddCorner(std::int64_t x) {
  const auto i = static_cast<std::size_t>(x);
  const std::array<std::uint8_t, 4> around = {above_[i], above_[i + 1], below_[i + 1], below_[i]};
  for (std::size_t k = 0; k < around.size(); ++k) {
    const std::uint8_t value = around[k];
    const auto* seen = std::find(around.begin(), around.begin() + k, value);
    if (value == ignored_ || seen != around.begin() + k) continue;
    unsigned which = 0;
    for (std::size_t j = 0; j < around.size(); ++j) which |= around[j] == value ? 1u << j : 0u;
    AddSegments(x, value, which);
  }
}

Status OutlineTracer::AddRow(const std::uint8_t* row) {
  std::swap(above_, below_);
  if (row == nullptr) {
    std::fill(below_.begin(), below_.end(), ignored_);
  } else {
    std::memcpy(below_.data() + 1, row, static_cast<std::size_t>(width_));
  }
  for (std::int64_t x = 0; x <= width_; x += kWord) {
    std::uint64_t a = 0, b = 0, c = 0, d = 0;  // eight corners at once: mostly all are alike
    std::memcpy(&a, above_.data() + x, kWord);
    std::memcpy(&b, above_.data() + x + 1, kWord);
    std::memcpy(&c, below_.data() + x, kWord);
    std::memcpy(&d, below_.data() + x + 1, kWord);
    if (a == b && a == c && a == d) continue;
    for (std::int64_t i = x; i <= std::min(width_, x + kWord - 1); ++i) AddCorner(i);
  }
  ++y_;
  if (next_.size() <= kMaxTracedSegments) return absl::OkStatus();
  return ResourceExhausted("trace outlines: too many and too long to be held");
}

/// Follows the line from `start` and takes it out; points on a straight line are left out.
Ring OutlineTracer::TakeRing(std::uint64_t start) {
  Ring ring;
  const auto is_straight = [](const Vertex& a, const Vertex& b, const Vertex& c) {
    return (b.x - a.x) * (c.y - b.y) == (b.y - a.y) * (c.x - b.x);
  };
  for (std::uint64_t at = start;;) {
    const auto found = next_.find(at);
    if (found == next_.end()) break;
    const Vertex point = PointOf(at);
    if (ring.size() >= 2 && is_straight(ring[ring.size() - 2], ring.back(), point)) ring.pop_back();
    ring.push_back(point);
    at = found->second;
    next_.erase(found);
  }
  if (ring.size() > 3 && is_straight(ring[ring.size() - 2], ring.back(), ring[0])) ring.pop_back();
  return ring;
}

std::vector<TracedPolygon> OutlineTracer::Finish() {
  (void)AddRow(nullptr);  // outlines that reach the last row end there
  std::vector<std::uint64_t> starts;
  starts.reserve(next_.size());
  for (const auto& [from, to] : next_) starts.push_back(from);
  std::sort(starts.begin(), starts.end());
  std::vector<TracedPolygon> polygons;
  std::vector<std::pair<std::uint8_t, Ring>> holes;
  for (const std::uint64_t start : starts) {
    Ring ring = TakeRing(start);
    if (ring.size() < 3) continue;
    const auto value = static_cast<std::uint8_t>(start >> (2 * kHalfBits));
    if (SignedAreaOf(ring) > 0) {
      polygons.push_back({value, {std::move(ring)}});
    } else {
      holes.emplace_back(value, std::move(ring));
    }
  }
  AssignHoles(holes, polygons);
  return polygons;
}

}  // namespace patchbay::workers
