#include "workers/annotations/label_painter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace patchbay::workers {
namespace {

constexpr std::int64_t kMaxPairs = 20'000'000;

struct Edge {
  Vertex a, b;  ///< a.y <= b.y
  double left, right;
};

bool Cross(const Edge& e, const Edge& f) {
  const double a = SideOf(e.a, e.b, f.a), b = SideOf(e.a, e.b, f.b);
  const double c = SideOf(f.a, f.b, e.a), d = SideOf(f.a, f.b, e.b);
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

constexpr double kEndless = std::numeric_limits<double>::infinity();
/// Around a box, so that rounding moves no edge into it.
constexpr double kMargin = 2;
/// Edges that reach further may be moved further by rounding.
constexpr double kExact = 1e12;

enum FrameSide : unsigned { kAbove = 1, kBelow = 2, kLeftOf = 4, kRightOf = 8 };

struct Frame {
  double left, top, right, bottom;

  unsigned SidesOf(const Vertex& v) const {
    return (v.y < top ? kAbove : 0u) | (v.y > bottom ? kBelow : 0u) | (v.x < left ? kLeftOf : 0u) |
           (v.x > right ? kRightOf : 0u);
  }
};

/// The ring without the inner vertices of every run that stays on one side of the frame: they
/// change nothing within it, neither edges nor how often a pixel is enclosed.
Ring NearPart(const Ring& ring, const Frame& frame) {
  Ring out;
  for (std::size_t i = 0; i < ring.size();) {
    out.push_back(ring[i]);
    unsigned shared = frame.SidesOf(ring[i]);
    std::size_t last = i;
    while (shared != 0 && last + 1 < ring.size()) {
      const unsigned next = shared & frame.SidesOf(ring[last + 1]);
      if (next == 0) break;
      shared = next;
      ++last;
    }
    if (last > i) out.push_back(ring[last]);
    i = last + 1;
  }
  return out;
}

Polygon NearPart(const Polygon& polygon, const Frame& frame) {
  Polygon out;
  for (const Ring& ring : polygon.rings) out.rings.push_back(NearPart(ring, frame));
  for (const Ring& ring : polygon.cutouts) out.cutouts.push_back(NearPart(ring, frame));
  return out;
}

std::int64_t TileOf(double at, std::int64_t side, std::int64_t count) {
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::floor(at / static_cast<double>(side))), 0, count - 1);
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

/// One tile's pixels, a byte each; they are written where they differ, and only then.
class LabelPainter::Canvas {
 public:
  explicit Canvas(std::int64_t side)
      : side_(side),
        row_words_(static_cast<std::size_t>(side / kBits) + 1),
        toggles_(static_cast<std::size_t>(side) * row_words_),
        turns_(static_cast<std::size_t>(side) + 1),
        changed_(static_cast<std::size_t>(side) / kBits + 1) {}

  /// A tile of `value` that will lie at `pixels` (side * side bytes).
  void Begin(std::uint8_t* pixels, std::uint8_t value) {
    pixels_ = pixels;
    value_ = value;
  }
  /// The value of every pixel, where none was written.
  std::optional<std::uint8_t> value() const { return value_; }

  /// Pixels of the tile whose centre lies within an odd number of `rings`.
  void Fill(const std::vector<Ring>& rings, const Box& tile, std::uint8_t value) {
    for (const Ring& ring : rings) {
      for (std::size_t i = 0; i < ring.size(); ++i) {
        Cross(ring[i], ring[i + 1 == ring.size() ? 0 : i + 1], tile);
      }
    }
    FindSpans();
    if (spans_.size() == 1 && spans_[0].begin == 0 && spans_[0].end == side_ * side_) {
      value_ = value;
    } else if (!spans_.empty() && value_ != value) {
      std::uint8_t* pixels = Pixels();
      for (const auto& [begin, end] : spans_) {
        std::memset(pixels + begin, value, static_cast<std::size_t>(end - begin));
      }
    }
  }

  /// `value` wherever `coverage` is not 0.
  void FillUnder(const Canvas& coverage, std::uint8_t value) {
    if (coverage.value_ == std::uint8_t{0}) return;
    if (coverage.value_) {
      value_ = value;
      return;
    }
    std::uint8_t* pixels = Pixels();
    for (std::int64_t i = 0; i < side_ * side_; ++i) {
      if (coverage.pixels_[i] != 0) pixels[i] = value;
    }
  }

 private:
  /// Where the edge crosses the line through the centres of each row: of its two ends, the upper
  /// one belongs to it. An edge to the left of the tile only turns its rows around, and one to the
  /// right of it changes no pixel.
  void Cross(const Vertex& a, const Vertex& b, const Box& tile) {
    const double top = std::min(a.y, b.y), bottom = std::max(a.y, b.y);
    const std::int64_t first = std::max<std::int64_t>(0, RowFrom(top, tile));
    const std::int64_t last = std::min<std::int64_t>(side_, RowFrom(bottom, tile));
    if (first >= last) return;
    const auto [least, most] = std::minmax(a.x, b.x);
    if (least > -kExact && most < kExact) {
      const auto left = static_cast<double>(tile.x), right = static_cast<double>(tile.x + side_);
      if (most < left - kMargin) {
        Turn(first);
        Turn(last);
        return;
      }
      if (least > right + kMargin) return;
    }
    SetChanged(first, last);
    for (std::int64_t row = first; row < last; row += kBits) {
      ToggleRows(a, b, row, std::min(row + kBits, last), tile);
    }
  }

  /// Turns the pixels of these rows, at most kBits, over from the edge on: the first whose centre
  /// lies on it or to the right of it, or none of the tile's.
  void ToggleRows(const Vertex& a, const Vertex& b, std::int64_t first, std::int64_t last,
                  const Box& tile) {
    const auto left = static_cast<double>(tile.x), side = static_cast<double>(side_);
    std::array<std::int32_t, kBits> columns;
    for (std::int64_t row = first; row < last; ++row) {  // by vectors
      const double y = static_cast<double>(tile.y + row) + 0.5;
      const double x = (b.x - a.x) * (y - a.y) / (b.y - a.y) + a.x;
      const double column = std::ceil(x - 0.5) - left;
      const double inside = column > 0 ? column : 0;
      columns[static_cast<std::size_t>(row - first)] =
          static_cast<std::int32_t>(inside < side ? inside : side);
    }
    std::uint64_t* words = toggles_.data() + static_cast<std::size_t>(first) * row_words_;
    for (std::int64_t row = first; row < last; ++row, words += row_words_) {
      const auto column =
          static_cast<std::uint32_t>(columns[static_cast<std::size_t>(row - first)]);
      words[column / kBits] ^= std::uint64_t{1} << (column % kBits);
    }
  }

  /// The first row of the tile whose centres lie at `y` or below.
  std::int64_t RowFrom(double y, const Box& tile) const {
    return static_cast<std::int64_t>(std::ceil(y - 0.5)) - tile.y;
  }
  /// Rows [first, last), of which there is one.
  void SetChanged(std::int64_t first, std::int64_t last) {
    for (std::int64_t word = first / kBits; word <= (last - 1) / kBits; ++word) {
      const std::int64_t begin = std::max<std::int64_t>(0, first - word * kBits);
      const std::int64_t rows = std::min(kBits, last - word * kBits) - begin;
      changed_[static_cast<std::size_t>(word)] |= (~std::uint64_t{0} >> (kBits - rows)) << begin;
    }
  }
  void Turn(std::int64_t row) {
    turns_[static_cast<std::size_t>(row)] ^= 1;
    SetChanged(row, row + 1);
  }

  /// Pixels that a polygon covers, in the order of the tile's memory: rows are joined.
  struct Span {
    std::int64_t begin, end;
  };

  void Cover(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (!spans_.empty() && spans_.back().end == begin) {
      spans_.back().end = end;
    } else {
      spans_.push_back({begin, end});
    }
  }

  /// Empties toggles_ and turns_ into spans_: row by row where something changes.
  void FindSpans() {
    spans_.clear();
    bool begins_inside = false;
    std::int64_t done = 0;  // rows
    for (std::size_t word = 0; word < changed_.size(); ++word) {
      for (std::uint64_t rows = std::exchange(changed_[word], 0); rows != 0; rows &= rows - 1) {
        const std::int64_t y = static_cast<std::int64_t>(word) * kBits + std::countr_zero(rows);
        if (begins_inside) Cover(done * side_, std::min(y, side_) * side_);
        begins_inside ^= std::exchange(turns_[static_cast<std::size_t>(y)], 0) != 0;
        if (y < side_) CoverRow(y, begins_inside);
        done = y + 1;
      }
    }
    if (begins_inside) Cover(done * side_, side_ * side_);
  }

  /// Row `y` alone, from its toggles, which it empties.
  void CoverRow(std::int64_t y, bool is_inside) {
    const std::int64_t row = y * side_;
    std::int64_t begin = row;
    std::uint64_t* const words = toggles_.data() + static_cast<std::size_t>(y) * row_words_;
    for (std::size_t word = 0; word < row_words_; ++word) {
      for (std::uint64_t at = std::exchange(words[word], 0); at != 0; at &= at - 1) {
        const std::int64_t x = row + static_cast<std::int64_t>(word) * kBits + std::countr_zero(at);
        if (is_inside) Cover(begin, x);
        is_inside = !is_inside;
        begin = x;
      }
    }
    if (is_inside) Cover(begin, row + side_);
  }

  std::uint8_t* Pixels() {
    if (value_) std::memset(pixels_, *value_, static_cast<std::size_t>(side_ * side_));
    value_.reset();
    return pixels_;
  }

  const std::int64_t side_;
  std::uint8_t* pixels_ = nullptr;
  std::optional<std::uint8_t> value_;
  static constexpr std::int64_t kBits = 64;
  const std::size_t row_words_;
  /// A bit for each pixel before which an odd number of edges cross its row, and one at the row's
  /// end, which changes nothing; 0 between two fills.
  std::vector<std::uint64_t> toggles_;
  /// Whether the rows from this one on begin inside where those above begin outside; 0 between two
  /// fills.
  std::vector<std::uint8_t> turns_;
  std::vector<std::uint64_t> changed_;  ///< a bit for each row with toggles or a turn
  std::vector<Span> spans_;
};

LabelPainter::LabelPainter(std::vector<PaintedPolygon> polygons, const Extent& level,
                           std::int64_t side, std::uint8_t ground)
    : polygons_(std::move(polygons)),
      grid_(CellsOf(level, Flat(side, side))),
      side_(side),
      ground_(ground),
      canvas_(std::make_unique<Canvas>(side)),
      coverage_(std::make_unique<Canvas>(side)) {
  for (const PaintedPolygon& painted : polygons_) {
    Bounds b{kEndless, kEndless, -kEndless, -kEndless};
    for (const Ring& ring : painted.polygon.rings) {
      for (const Vertex& v : ring) {
        b.left = std::min(b.left, v.x), b.right = std::max(b.right, v.x);
        b.top = std::min(b.top, v.y), b.bottom = std::max(b.bottom, v.y);
      }
    }
    bounds_.push_back(b);
  }
  by_top_.resize(polygons_.size());
  std::iota(by_top_.begin(), by_top_.end(), 0u);
  std::sort(by_top_.begin(), by_top_.end(),
            [this](std::uint32_t a, std::uint32_t b) { return bounds_[a].top < bounds_[b].top; });
}

LabelPainter::~LabelPainter() = default;

void LabelPainter::BeginRow(std::int64_t row) {
  const double top = static_cast<double>(row * side_), bottom = top + static_cast<double>(side_);
  while (next_ < by_top_.size() && bounds_[by_top_[next_]].top <= bottom) {
    active_.push_back(by_top_[next_++]);
  }
  std::erase_if(active_, [&](std::uint32_t i) { return bounds_[i].bottom < top; });
  std::sort(active_.begin(), active_.end());  // the order of painting
  row_polygons_.clear();
  tiles_.assign(static_cast<std::size_t>(grid_.x), {});
  const double width = static_cast<double>(grid_.x * side_);
  const Frame frame{-kEndless, top - kMargin, kEndless, bottom + kMargin};
  for (const std::uint32_t i : active_) {
    const Bounds& b = bounds_[i];
    if (b.right < 0 || b.left > width) continue;
    const auto number = static_cast<std::uint32_t>(row_polygons_.size());
    row_polygons_.push_back({polygons_[i].value, NearPart(polygons_[i].polygon, frame)});
    const std::int64_t last = TileOf(b.right, side_, grid_.x);
    for (std::int64_t x = TileOf(b.left, side_, grid_.x); x <= last; ++x) {
      tiles_[static_cast<std::size_t>(x)].push_back(number);
    }
  }
  row_ = row;
}

void LabelPainter::PaintOne(const PaintedPolygon& painted, const Box& tile, Canvas& canvas) {
  const double left = static_cast<double>(tile.x), right = left + static_cast<double>(side_);
  const Polygon near =
      NearPart(painted.polygon, {left - kMargin, -kEndless, right + kMargin, kEndless});
  if (near.cutouts.empty()) return canvas.Fill(near.rings, tile, painted.value);
  covered_.resize(static_cast<std::size_t>(side_ * side_));
  coverage_->Begin(covered_.data(), 0);
  coverage_->Fill(near.rings, tile, 1);
  for (const Ring& ring : near.cutouts) coverage_->Fill({ring}, tile, 0);
  canvas.FillUnder(*coverage_, painted.value);
}

std::optional<std::uint8_t> LabelPainter::Paint(std::int64_t row, std::int64_t column,
                                                std::uint8_t* out) {
  if (row != row_) BeginRow(row);
  const auto& polygons = tiles_[static_cast<std::size_t>(column)];
  if (polygons.empty()) return ground_;
  const Box tile = Box2D(row * side_, column * side_, side_, side_);
  canvas_->Begin(out, ground_);
  for (const std::uint32_t i : polygons) PaintOne(row_polygons_[i], tile, *canvas_);
  return canvas_->value();
}

}  // namespace patchbay::workers
