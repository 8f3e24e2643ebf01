#include "workers/plots/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include <cairo.h>
#include <freetype/freetype.h>
#include <freetype/ftoutln.h>
#include <ft2build.h>

#include "runtime/core/status.h"
#include "runtime/core/strings.h"
#include "workers/sources/png_encoder.h"

// font_files.S: the two files as they were when this program was built.
extern "C" const char patchbay_font_regular_begin[], patchbay_font_regular_end[];
extern "C" const char patchbay_font_bold_begin[], patchbay_font_bold_end[];

namespace patchbay::workers {
namespace {

constexpr char32_t kMalformed = 0xFFFFFFFF;  ///< no font has a glyph for it

/// The character that begins `text`, taken off it; nothing where it is malformed UTF-8.
std::optional<char32_t> TakeCharacter(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = first < 0x80             ? 1
                           : (first & 0xE0) == 0xC0 ? 2
                           : (first & 0xF0) == 0xE0 ? 3
                           : (first & 0xF8) == 0xF0 ? 4
                                                    : 0;
  if (size == 0 || size > text.size()) return std::nullopt;
  char32_t code = size == 1 ? first : first & (0x7F >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (byte & 0x3F);
  }
  text.remove_prefix(size);
  return code;
}

/// The characters of `text`; a malformed byte is one.
std::u32string CharactersOf(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const std::optional<char32_t> character = TakeCharacter(text);
    if (!character.has_value()) text.remove_prefix(1);
    characters.push_back(character.value_or(kMalformed));
  }
  return characters;
}

/// The target of FreeType's outline calls.
struct Pen {
  cairo_t* context;
  double left;  ///< font units
  double unit;  ///< ems per font unit

  double X(const FT_Vector* at) const { return (left + static_cast<double>(at->x)) * unit; }
  double Y(const FT_Vector* at) const { return static_cast<double>(at->y) * unit; }
};

int MoveTo(const FT_Vector* to, void* user) {
  const auto* pen = static_cast<const Pen*>(user);
  cairo_close_path(pen->context);
  cairo_move_to(pen->context, pen->X(to), pen->Y(to));
  return 0;
}

int LineTo(const FT_Vector* to, void* user) {
  const auto* pen = static_cast<const Pen*>(user);
  cairo_line_to(pen->context, pen->X(to), pen->Y(to));
  return 0;
}

int ConicTo(const FT_Vector* control, const FT_Vector* to, void* user) {
  const auto* pen = static_cast<const Pen*>(user);
  double x = 0, y = 0;
  cairo_get_current_point(pen->context, &x, &y);
  const double cx = pen->X(control), cy = pen->Y(control), tx = pen->X(to), ty = pen->Y(to);
  cairo_curve_to(pen->context, x + (cx - x) * 2 / 3, y + (cy - y) * 2 / 3, tx + (cx - tx) * 2 / 3,
                 ty + (cy - ty) * 2 / 3, tx, ty);
  return 0;
}

int CubicTo(const FT_Vector* a, const FT_Vector* b, const FT_Vector* to, void* user) {
  const auto* pen = static_cast<const Pen*>(user);
  cairo_curve_to(pen->context, pen->X(a), pen->Y(a), pen->X(b), pen->Y(b), pen->X(to), pen->Y(to));
  return 0;
}

constexpr FT_Outline_Funcs kPen = {&MoveTo, &LineTo, &ConicTo, &CubicTo, 0, 0};

/// Loads each glyph of `text` in turn and calls `see` with where it begins.
/// @return where the text ends; font units.
template <typename See>
double WalkGlyphs(FT_Face face, std::string_view text, See see) {
  double left = 0;
  FT_UInt before = 0;
  for (const char32_t character : CharactersOf(text)) {
    const FT_UInt glyph = FT_Get_Char_Index(face, character);
    FT_Vector kerning{};
    FT_Get_Kerning(face, before, glyph, FT_KERNING_UNSCALED, &kerning);
    left += static_cast<double>(kerning.x);
    PB_CHECK(FT_Load_Glyph(face, glyph, FT_LOAD_NO_SCALE) == 0);
    see(left);
    left += static_cast<double>(face->glyph->metrics.horiAdvance);
    before = glyph;
  }
  return left;
}

double UnitOf(FT_Face face) { return 1.0 / face->units_per_EM; }

constexpr double kSnap = 64;
constexpr std::string_view kDots = "...";

double Snapped(double value) {
  // Beyond every picture, and within the range of cairo's fixed-point coordinates.
  constexpr double kFar = 1e6;
  if (!(value > -kFar)) return -kFar;
  return std::nearbyint(std::min(value, kFar) * kSnap) / kSnap;
}

PlotPoint Snapped(PlotPoint point) { return {Snapped(point.x), Snapped(point.y)}; }

void AddLines(cairo_t* context, std::span<const PlotPoint> points) {
  for (const PlotPoint& point : points) {
    const PlotPoint at = Snapped(point);
    cairo_line_to(context, at.x, at.y);
  }
}

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

Font Font::Regular() { return Font({patchbay_font_regular_begin, patchbay_font_regular_end}); }
Font Font::Bold() { return Font({patchbay_font_bold_begin, patchbay_font_bold_end}); }

Font::Font(std::string_view file) {
  FT_Library library = nullptr;
  PB_CHECK(FT_Init_FreeType(&library) == 0);
  library_.reset(library);
  FT_Face face = nullptr;
  PB_CHECK(FT_New_Memory_Face(library, reinterpret_cast<const FT_Byte*>(file.data()),
                              static_cast<FT_Long>(file.size()), 0, &face) == 0);
  face_.reset(face);
}

void Font::Release::operator()(FT_LibraryRec_* library) const { FT_Done_FreeType(library); }
void Font::Release::operator()(FT_FaceRec_* face) const { FT_Done_Face(face); }

double Font::WidthOf(std::string_view text) const {
  return WalkGlyphs(face_.get(), text, [](double) {}) * UnitOf(face_.get());
}

void Font::AddOutline(std::string_view text, double left, _cairo* context) const {
  const double unit = UnitOf(face_.get());
  WalkGlyphs(face_.get(), text, [&](double at) {
    Pen pen{context, left / unit + at, unit};
    FT_Outline_Decompose(&face_->glyph->outline, &kPen, &pen);
  });
}

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

void Drawing::Clip(PlotPoint top_left, PlotPoint bottom_right) {
  const PlotPoint a = Snapped(top_left), b = Snapped(bottom_right);
  const double left = std::floor(a.x), top = std::floor(a.y);
  ClipNothing();
  cairo_rectangle(context_.get(), left, top, std::ceil(b.x) - left, std::ceil(b.y) - top);
  cairo_clip(context_.get());
}

void Drawing::ClipNothing() { cairo_reset_clip(context_.get()); }

void Drawing::FillRect(PlotPoint top_left, PlotPoint bottom_right, Color color) {
  const PlotPoint a = Snapped(top_left), b = Snapped(bottom_right);
  SetColor(color);
  cairo_rectangle(context_.get(), a.x, a.y, b.x - a.x, b.y - a.y);
  cairo_fill(context_.get());
}

void Drawing::FillPolygon(std::span<const PlotPoint> points, Color color) {
  SetColor(color);
  AddLines(context_.get(), points);
  cairo_close_path(context_.get());
  cairo_set_fill_rule(context_.get(), CAIRO_FILL_RULE_EVEN_ODD);
  cairo_fill(context_.get());
  cairo_set_fill_rule(context_.get(), CAIRO_FILL_RULE_WINDING);
}

void Drawing::FillDisc(PlotPoint center, double radius, Color color) {
  const PlotPoint at = Snapped(center);
  SetColor(color);
  cairo_arc(context_.get(), at.x, at.y, radius, 0, 2 * std::numbers::pi);
  cairo_fill(context_.get());
}

void Drawing::DrawLine(std::span<const PlotPoint> points, const Stroke& stroke) {
  SetColor(stroke.color);
  cairo_set_line_width(context_.get(), stroke.width);
  cairo_set_dash(context_.get(), &stroke.dash, stroke.dash > 0 ? 1 : 0, 0);
  AddLines(context_.get(), points);
  cairo_stroke(context_.get());
}

void Drawing::DrawPicture(PlotPoint top_left, PlotPoint bottom_right, const ConstTensorView& rgb) {
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
  const PlotPoint a = Snapped(top_left), b = Snapped(bottom_right);
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

void Drawing::DrawText(PlotPoint at, std::string_view text, const TextStyle& style) {
  const PlotPoint start = Snapped(at);
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
  cairo_surface_t* surface = cairo_get_target(context_.get());
  const cairo_status_t status = cairo_status(context_.get());
  if (status != CAIRO_STATUS_SUCCESS) return Internal("draw: ", cairo_status_to_string(status));
  cairo_surface_flush(surface);
  const unsigned char* const pixels = cairo_image_surface_get_data(surface);
  const int stride = cairo_image_surface_get_stride(surface);
  std::vector<std::byte> rgb(static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_) *
                             3);
  std::byte* to = rgb.data();
  for (int y = 0; y < height_; ++y) {
    const auto* row =
        reinterpret_cast<const std::uint32_t*>(pixels + static_cast<std::ptrdiff_t>(y) * stride);
    for (int x = 0; x < width_; ++x) {
      *to++ = static_cast<std::byte>(row[x] >> 16);
      *to++ = static_cast<std::byte>(row[x] >> 8);
      *to++ = static_cast<std::byte>(row[x]);
    }
  }
  return EncodePng(ContiguousView<3>(rgb.data(), DType::kUint8, {height_, width_, 3}));
}

}  // namespace patchbay::workers
