#include "workers/plots/font.h"

#include <cstdint>
#include <optional>
#include <string>

#include <cairo.h>
#include <freetype/freetype.h>
#include <freetype/ftoutln.h>
#include <ft2build.h>

#include "runtime/core/status.h"

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
  double unit;  ///< ems a font unit

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

}  // namespace patchbay::workers
