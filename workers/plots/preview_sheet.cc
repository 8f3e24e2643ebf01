#include "workers/plots/preview_sheet.h"

#include <algorithm>
#include <iterator>

#include "runtime/core/strings.h"
#include "workers/plots/page.h"

namespace patchbay::workers {
namespace {

constexpr double kSheetMargin = 40, kTitleHeight = 84, kSheetGap = 28;
constexpr double kThumbnailWidth = 460, kThumbnailHeight = 360;
constexpr double kFactsWidth = 500, kPatchSide = 260, kPatchFactsWidth = 460;
constexpr double kLineSpacing = 1.3, kSwatchSide = 30, kSmallSwatchSide = 17;  ///< ems, pixels
constexpr std::size_t kImageColumns = 2, kMaxFacts = 12;
constexpr TextStyle kTitleStyle = {.size = 34, .color = kInk, .bold = true};
constexpr TextStyle kNameStyle = {.size = 21, .color = kInk, .bold = true};
constexpr TextStyle kFactStyle = {.size = 19, .color = kInk};
constexpr TextStyle kFaintStyle = {.size = 17, .color = kFaintInk};
constexpr TextStyle kWarningStyle = {.size = 18, .color = kAccent, .bold = true};

struct Frame {
  PlotPoint top_left, bottom_right;
};

/// The largest place of a picture's shape within a box, at its top left.
Frame Fitted(const Picture& picture, PlotPoint at, double width, double height) {
  const double scale = std::min(width / static_cast<double>(picture.width),
                                height / static_cast<double>(picture.height));
  return {at,
          {at.x + scale * static_cast<double>(picture.width),
           at.y + scale * static_cast<double>(picture.height)}};
}

void DrawFrame(Drawing& drawing, const Frame& frame) {
  const PlotPoint &a = frame.top_left, &b = frame.bottom_right;
  const PlotPoint corners[] = {a, {b.x, a.y}, b, {a.x, b.y}, a};
  drawing.DrawLine(corners, {.color = {200, 203, 208}, .width = 1});
}

/// Along every edge between the area and the rest.
void DrawOutline(Drawing& drawing, const Picture& picture, const OutlinedArea& area,
                 const Frame& frame) {
  if (area.inside.size() != static_cast<std::size_t>(picture.height * picture.width)) return;
  const double scale_x =
      (frame.bottom_right.x - frame.top_left.x) / static_cast<double>(picture.width);
  const double scale_y =
      (frame.bottom_right.y - frame.top_left.y) / static_cast<double>(picture.height);
  const auto is_inside = [&](std::int64_t y, std::int64_t x) {
    return y >= 0 && x >= 0 && y < picture.height && x < picture.width &&
           area.inside[static_cast<std::size_t>(y * picture.width + x)] != 0;
  };
  const auto place = [&](std::int64_t y, std::int64_t x) {
    return PlotPoint{frame.top_left.x + static_cast<double>(x) * scale_x,
                     frame.top_left.y + static_cast<double>(y) * scale_y};
  };
  const Stroke stroke{.color = area.color, .width = 1.6};
  for (std::int64_t y = 0; y <= picture.height; ++y) {
    for (std::int64_t x = 0; x <= picture.width; ++x) {
      if (is_inside(y, x) != is_inside(y - 1, x)) {
        const PlotPoint edge[] = {place(y, x), place(y, x + 1)};
        drawing.DrawLine(edge, stroke);
      }
      if (is_inside(y, x) != is_inside(y, x - 1)) {
        const PlotPoint edge[] = {place(y, x), place(y + 1, x)};
        drawing.DrawLine(edge, stroke);
      }
    }
  }
}

/// Lines from `at` downwards; returns where the next would stand.
double DrawLines(Drawing& drawing, PlotPoint at, double width,
                 const std::vector<std::string>& lines, const TextStyle& style) {
  for (const std::string& line : lines) {
    drawing.DrawText(at, drawing.Shortened(line, width, style), style);
    at.y += kLineSpacing * style.size;
  }
  return at.y;
}

/// Draws squares with their texts from `at` down, as many as fit above `bottom`, then the number of
/// the rest. Returns the position below.
double DrawSwatches(Drawing& drawing, PlotPoint at, double bottom,
                    const std::vector<Swatch>& swatches, double side) {
  const TextStyle& style = side < kSwatchSide ? kFaintStyle : kFactStyle;
  for (std::size_t i = 0; i < swatches.size(); ++i) {
    const double baseline = at.y + side / 2 + 0.35 * style.size;
    if (at.y + 2 * side + 8 > bottom && i + 1 < swatches.size()) {
      drawing.DrawText({at.x, baseline}, StrCat("and ", swatches.size() - i, " more classes"),
                       style);
      return at.y + side + 8;
    }
    drawing.FillRect(at, {at.x + side, at.y + side}, swatches[i].color);
    DrawFrame(drawing, {at, {at.x + side, at.y + side}});
    const double left = at.x + side + 12;
    drawing.DrawText({left, baseline},
                     drawing.Shortened(swatches[i].text, kFactsWidth - side - 12, style), style);
    at.y += side + 8;
  }
  return at.y;
}

void DrawImageCard(Drawing& drawing, const ImageCard& card, PlotPoint at) {
  drawing.DrawText(
      {at.x, at.y + 18},
      drawing.Shortened(card.name, kThumbnailWidth + kSheetGap + kFactsWidth, kNameStyle),
      kNameStyle);
  const PlotPoint top = {at.x, at.y + 34};
  const Frame frame = Fitted(card.thumbnail, top, kThumbnailWidth, kThumbnailHeight);
  drawing.DrawPicture(frame.top_left, frame.bottom_right, card.thumbnail.View());
  for (const OutlinedArea& area : card.areas) DrawOutline(drawing, card.thumbnail, area, frame);
  DrawFrame(drawing, frame);
  const double left = at.x + kThumbnailWidth + kSheetGap, bottom = top.y + kThumbnailHeight;
  double y = DrawLines(drawing, {left, top.y + 16}, kFactsWidth, card.facts, kFactStyle) - 6;
  y = DrawSwatches(drawing, {left, y}, bottom, card.stains, kSwatchSide);
  if (!card.warning.empty()) {
    drawing.DrawText({left, y + 16}, drawing.Shortened(card.warning, kFactsWidth, kWarningStyle),
                     kWarningStyle);
    y += kLineSpacing * kWarningStyle.size;
  }
  DrawSwatches(drawing, {left, y}, bottom, card.classes, kSmallSwatchSide);
}

void DrawPatchCard(Drawing& drawing, const PatchCard& card, PlotPoint at) {
  double left = at.x;
  for (std::size_t i = 0; i < card.pictures.size(); ++i) {
    const Frame frame = Fitted(card.pictures[i], {left, at.y}, kPatchSide, kPatchSide);
    drawing.DrawPicture(frame.top_left, frame.bottom_right, card.pictures[i].View());
    DrawFrame(drawing, frame);
    if (i < card.captions.size()) {
      drawing.DrawText({left, at.y + kPatchSide + 20},
                       drawing.Shortened(card.captions[i], kPatchSide, kFaintStyle), kFaintStyle);
    }
    left += kPatchSide + kSheetGap / 2;
  }
  left += kSheetGap / 2;
  drawing.DrawText({left, at.y + 17}, drawing.Shortened(card.name, kPatchFactsWidth, kNameStyle),
                   kNameStyle);
  std::vector<std::string> facts = card.facts;
  if (facts.size() > kMaxFacts) facts.resize(kMaxFacts);
  DrawLines(drawing, {left, at.y + 17 + kLineSpacing * kNameStyle.size}, kPatchFactsWidth, facts,
            kFaintStyle);
}

}  // namespace

Color ClassColor(int value) {
  // The first eight stay apart for colour-blind readers, on pink tissue too. Each of the others is
  // the one furthest from those before it, from white and from pale tissue in CIELAB, where
  // distances as protanopes and deuteranopes see them count twice.
  constexpr Color kColours[] = {
      {0, 114, 178},   {230, 159, 0},   {0, 158, 115},   {213, 94, 0},    {86, 180, 233},
      {204, 0, 204},   {240, 228, 66},  {90, 60, 30},    {0, 0, 255},     {90, 0, 75},
      {240, 225, 180}, {255, 165, 195}, {255, 0, 90},    {150, 240, 120}, {0, 255, 255},
      {45, 0, 150},    {120, 135, 255}, {135, 105, 135}, {15, 45, 120},   {135, 75, 255},
      {0, 60, 45},     {75, 90, 0},     {165, 0, 75},    {195, 165, 75},  {240, 105, 180},
      {150, 195, 135}, {180, 75, 45},   {180, 30, 150},  {180, 165, 150}, {105, 165, 255},
      {30, 210, 30},   {0, 75, 105},    {90, 60, 165},   {195, 240, 210}, {75, 225, 255},
      {255, 15, 195},  {0, 0, 195},     {90, 135, 75},   {225, 105, 120}, {120, 150, 30},
      {30, 225, 120},  {195, 225, 90},  {0, 60, 210},    {105, 15, 0},    {150, 60, 60},
      {195, 0, 15},    {150, 75, 105},  {90, 15, 30},    {90, 75, 75},    {225, 0, 135},
      {135, 15, 255},  {150, 210, 210}, {135, 105, 255}, {120, 0, 180},   {195, 240, 150},
      {0, 165, 165},   {165, 120, 210}, {105, 0, 135},   {120, 120, 90},  {225, 135, 225},
      {75, 30, 60},    {0, 60, 0},      {135, 0, 105},   {255, 180, 165}};
  return kColours[static_cast<std::size_t>(value) % std::size(kColours)];
}

ConstTensorView Picture::View() const {
  return ContiguousView<3>(reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(rgb.data())),
                           DType::kUint8, {height, width, 3});
}

StatusOr<std::string> DrawImageSheet(const std::string& title,
                                     const std::vector<ImageCard>& cards) {
  const std::size_t columns = std::min(kImageColumns, std::max<std::size_t>(1, cards.size()));
  const std::size_t rows = (cards.size() + columns - 1) / columns;
  const double width = kThumbnailWidth + kSheetGap + kFactsWidth, height = kThumbnailHeight + 34;
  Drawing drawing(static_cast<int>(2 * kSheetMargin +
                                   static_cast<double>(columns) * (width + kSheetGap) - kSheetGap),
                  static_cast<int>(kTitleHeight + kSheetMargin +
                                   static_cast<double>(rows) * (height + kSheetGap)),
                  kWhite);
  drawing.DrawText({kSheetMargin, 56}, title, kTitleStyle);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    DrawImageCard(drawing, cards[i],
                  {kSheetMargin + static_cast<double>(i % columns) * (width + kSheetGap),
                   kTitleHeight + static_cast<double>(i / columns) * (height + kSheetGap)});
  }
  return drawing.Png();
}

StatusOr<std::string> DrawPatchSheet(const std::string& title,
                                     const std::vector<PatchCard>& cards) {
  std::size_t pictures = 1;
  for (const PatchCard& card : cards) pictures = std::max(pictures, card.pictures.size());
  const double width = static_cast<double>(pictures) * (kPatchSide + kSheetGap / 2) +
                       kSheetGap / 2 + kPatchFactsWidth;
  const double height = kPatchSide + 34;
  Drawing drawing(static_cast<int>(2 * kSheetMargin + width),
                  static_cast<int>(kTitleHeight + kSheetMargin +
                                   static_cast<double>(cards.size()) * (height + kSheetGap / 2)),
                  kWhite);
  drawing.DrawText({kSheetMargin, 56}, drawing.Shortened(title, width, kTitleStyle), kTitleStyle);
  for (std::size_t i = 0; i < cards.size(); ++i) {
    DrawPatchCard(drawing, cards[i],
                  {kSheetMargin, kTitleHeight + static_cast<double>(i) * (height + kSheetGap / 2)});
  }
  return drawing.Png();
}

}  // namespace patchbay::workers
