#include "workers/plots/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include <cairo.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

constexpr double kSnap = 64;
constexpr std::string_view kDots = "...";

double Snapped(double value) {
  // Beyond every picture, and within the range of cairo's fixed-point coordinates.
  constexpr double kFar = 1e6;
  if (!(value > -kFar)) return -kFar;
  return std::nearbyint(std::min(value, kFar) * kSnap) / kSnap;
}

Point Snapped(Point point) { return {Snapped(point.x), Snapped(point.y)}; }

void AddLines(cairo_t* context, std::span<const Point> points) {
  for (const Point& point : points) {
    const Point at = Snapped(point);
    cairo_line_to(context, at.x, at.y);
  }
}

cairo_status_t Append(void* bytes, const unsigned char* from, unsigned int size) {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(from), size);
  return CAIRO_STATUS_SUCCESS;
}

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

void Drawing::Release::operator()(_cairo* context) const { cairo_destroy(context); }

Drawing::Drawing(int width, int height, Color background)
    : width_(width), height_(height), regular_(Font::Regular()), bold_(Font::Bold()) {
  cairo_surface_t* surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  context_.reset(cairo_create(surface));
  cairo_surface_destroy(surface);  // the context keeps it
  cairo_set_antialias(context_.get(), CAIRO_ANTIALIAS_BEST);
  cairo_set_line_cap(context_.get(), CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(context_.get(), CAIRO_LINE_JOIN_ROUND);
  SetColor(background.Faded(1));
  cairo_paint(context_.get());
}

void Drawing::SetColor(Color color) {
  cairo_set_source_rgba(context_.get(), color.red / 255.0, color.green / 255.0, color.blue / 255.0,
                        color.alpha);
}

void Drawing::Clip(Point top_left, Point bottom_right) {
  const Point a = Snapped(top_left), b = Snapped(bottom_right);
  const double left = std::floor(a.x), top = std::floor(a.y);
  ClipNothing();
  cairo_rectangle(context_.get(), left, top, std::ceil(b.x) - left, std::ceil(b.y) - top);
  cairo_clip(context_.get());
}

void Drawing::ClipNothing() { cairo_reset_clip(context_.get()); }

void Drawing::FillRect(Point top_left, Point bottom_right, Color color) {
  const Point a = Snapped(top_left), b = Snapped(bottom_right);
  SetColor(color);
  cairo_rectangle(context_.get(), a.x, a.y, b.x - a.x, b.y - a.y);
  cairo_fill(context_.get());
}

void Drawing::FillPolygon(std::span<const Point> points, Color color) {
  SetColor(color);
  AddLines(context_.get(), points);
  cairo_close_path(context_.get());
  cairo_set_fill_rule(context_.get(), CAIRO_FILL_RULE_EVEN_ODD);
  cairo_fill(context_.get());
  cairo_set_fill_rule(context_.get(), CAIRO_FILL_RULE_WINDING);
}

void Drawing::FillDisc(Point center, double radius, Color color) {
  const Point at = Snapped(center);
  SetColor(color);
  cairo_arc(context_.get(), at.x, at.y, radius, 0, 2 * std::numbers::pi);
  cairo_fill(context_.get());
}

void Drawing::DrawLine(std::span<const Point> points, const Stroke& stroke) {
  SetColor(stroke.color);
  cairo_set_line_width(context_.get(), stroke.width);
  cairo_set_dash(context_.get(), &stroke.dash, stroke.dash > 0 ? 1 : 0, 0);
  AddLines(context_.get(), points);
  cairo_stroke(context_.get());
}

void Drawing::DrawPicture(Point top_left, Point bottom_right, const ConstTensorView& rgb) {
  PB_CHECK(rgb.rank == 3 && rgb.shape[2] == 3 && rgb.dtype == DType::kUint8);
  const auto height = static_cast<int>(rgb.shape[0]), width = static_cast<int>(rgb.shape[1]);
  cairo_surface_t* surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  unsigned char* const pixels = cairo_image_surface_get_data(surface);
  const int stride = cairo_image_surface_get_stride(surface);
  for (int y = 0; pixels != nullptr && y < height; ++y) {
    auto* row = reinterpret_cast<std::uint32_t*>(pixels + static_cast<std::ptrdiff_t>(y) * stride);
    for (int x = 0; x < width; ++x) {
      const std::byte* from = rgb.data + y * rgb.stride_bytes[0] + x * rgb.stride_bytes[1];
      const auto channel = [&](std::int64_t c) {
        return std::to_integer<std::uint32_t>(from[c * rgb.stride_bytes[2]]);
      };
      row[x] = (channel(0) << 16) | (channel(1) << 8) | channel(2);
    }
  }
  cairo_surface_mark_dirty(surface);
  const Point a = Snapped(top_left), b = Snapped(bottom_right);
  cairo_save(context_.get());
  cairo_rectangle(context_.get(), a.x, a.y, b.x - a.x, b.y - a.y);
  cairo_clip(context_.get());
  cairo_translate(context_.get(), a.x, a.y);
  cairo_scale(context_.get(), (b.x - a.x) / width, (b.y - a.y) / height);
  cairo_set_source_surface(context_.get(), surface, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(context_.get()), CAIRO_FILTER_GOOD);
  cairo_pattern_set_extend(cairo_get_source(context_.get()), CAIRO_EXTEND_PAD);
  cairo_paint(context_.get());
  cairo_restore(context_.get());
  cairo_surface_destroy(surface);
}

void Drawing::DrawText(Point at, std::string_view text, const TextStyle& style) {
  const Point start = Snapped(at);
  const double scale = style.size;
  cairo_matrix_t ems;  // from ems, y up, to pixels
  if (style.upwards) {
    cairo_matrix_init(&ems, 0, -scale, -scale, 0, start.x, start.y);
  } else {
    cairo_matrix_init(&ems, scale, 0, 0, -scale, start.x, start.y);
  }
  const Font& font = FontOf(style);
  double left = 0;
  if (style.align != Align::kLeft) {
    left = -font.WidthOf(text) * (style.align == Align::kCenter ? 0.5 : 1.0);
  }
  SetColor(style.color);
  cairo_set_matrix(context_.get(), &ems);
  font.AddOutline(text, left, context_.get());
  cairo_identity_matrix(context_.get());
  cairo_fill(context_.get());
}

double Drawing::TextWidth(std::string_view text, const TextStyle& style) const {
  return FontOf(style).WidthOf(text) * style.size;
}

std::string Drawing::Shortened(std::string_view text, double width, const TextStyle& style) const {
  if (TextWidth(text, style) <= width) return std::string(text);
  for (std::size_t kept = text.size() / 2; kept > 0; --kept) {
    std::size_t begin = kept, end = text.size() - kept;
    while (begin > 0 && IsContinuation(text[begin])) --begin;
    while (end < text.size() && IsContinuation(text[end])) ++end;
    const std::string shorter = StrCat(text.substr(0, begin), kDots, text.substr(end));
    if (TextWidth(shorter, style) <= width) return shorter;
  }
  return std::string(kDots);
}

StatusOr<std::string> Drawing::Png() const {
  std::string bytes;
  cairo_status_t status = cairo_status(context_.get());
  if (status == CAIRO_STATUS_SUCCESS) {
    status = cairo_surface_write_to_png_stream(cairo_get_target(context_.get()), &Append, &bytes);
  }
  if (status == CAIRO_STATUS_SUCCESS) return bytes;
  return absl::InternalError(StrCat("write png: ", cairo_status_to_string(status)));
}

}  // namespace patchbay::workers
