#include "workers/plots/page.h"

#include <array>
#include <sstream>

#include "runtime/core/strings.h"
#include "workers/plots/axes.h"

namespace patchbay::workers {
namespace {

constexpr double kPageMargin = 46;
constexpr double kTextSize = 19, kLineHeight = 32, kSampleWidth = 40;

std::string SourceText(const results::SpectraDefinition& d) {
  std::string text = StrCat("frame ", d.frame, " px, hop ", d.hop, " px, window ", d.window,
                            ", prefilter ", d.prefilter, ", channel ", d.channel);
  if (d.tissue_only) text += ", tissue only";
  return StrCat(text, ", profile ", d.profile, ", level ", d.level, ", ", d.numerics);
}

std::string CountText(const results::SpectraDocument& document) {
  if (!document.cohort.has_value()) return "no slide was measured";
  const results::SpectraPart& cohort = *document.cohort;
  const auto count = [](std::int64_t value) { return Grouped(static_cast<std::uint64_t>(value)); };
  std::string text = StrCat(count(cohort.frames), cohort.frames == 1 ? " frame of " : " frames of ",
                            SlidesOf(document.slides.size()));
  if (cohort.frames_skipped > 0) {
    text += StrCat("; ", count(cohort.frames_skipped), " frames on damaged tiles left out");
  }
  if (cohort.frames_off_tissue > 0) {
    text += StrCat("; ", count(cohort.frames_off_tissue), " frames off tissue left out");
  }
  if (!document.duplicates.empty()) {
    text +=
        StrCat("; ", SlidesOf(document.duplicates.size()), " with the content of another left out");
  }
  if (!document.failed.empty()) text += StrCat("; ", SlidesOf(document.failed.size()), " failed");
  return text;
}

}  // namespace

std::string Decibels(double value) { return Digits(value, 2) + " dB"; }

std::string SlidesOf(std::size_t count) {
  return StrCat(Grouped(count), count == 1 ? " slide" : " slides");
}

Page::Page(int width, int height, const results::SpectraDocument& document)
    : drawing_(width, height, kWhite) {
  Source(document);
}

void Page::Title(const std::string& title, const std::string& subtitle) {
  TextStyle style;
  style.size = 33;
  style.bold = true;
  drawing_.DrawText({kPageMargin, 58}, title, style);
  style = {};
  style.size = 22;
  style.color = kFaintInk;
  drawing_.DrawText({kPageMargin, 98}, subtitle, style);
}

void Page::Source(const results::SpectraDocument& document) {
  TextStyle style;
  style.size = 17.5;
  style.color = kFaintInk;
  drawing_.DrawText({kPageMargin, drawing_.height() - 44.0}, CountText(document), style);
  drawing_.DrawText({kPageMargin, drawing_.height() - 18.0}, SourceText(document.definition),
                    style);
}

void Page::BeginColumn(double left, double top) {
  column_left_ = left;
  column_top_ = top;
}

void Page::Legend(const std::vector<LegendEntry>& entries) {
  TextStyle style;
  style.size = kTextSize;
  for (const LegendEntry& entry : entries) {
    const double y = column_top_ + kLineHeight / 2, left = column_left_;
    Stroke stroke{entry.color, entry.width};
    if (entry.kind == LegendEntry::Kind::kDashed) stroke.dash = 7;
    const std::array<PlotPoint, 2> line = {PlotPoint{left, y}, {left + kSampleWidth, y}};
    switch (entry.kind) {
      case LegendEntry::Kind::kArea:
        drawing_.FillRect({left, y - 9}, {left + kSampleWidth, y + 9}, entry.color);
        break;
      case LegendEntry::Kind::kDisc:
        drawing_.FillDisc({left + kSampleWidth / 2, y}, entry.width, entry.color);
        break;
      case LegendEntry::Kind::kBar:
        for (const double x : {line[0].x, line[1].x}) {
          drawing_.DrawLine(std::array<PlotPoint, 2>{PlotPoint{x, y - 7}, {x, y + 7}}, stroke);
        }
        [[fallthrough]];
      case LegendEntry::Kind::kLine:
      case LegendEntry::Kind::kDashed:
        drawing_.DrawLine(line, stroke);
        break;
    }
    const double room = drawing_.width() - left - kSampleWidth - 24;
    drawing_.DrawText({left + kSampleWidth + 14, y + 0.36 * kTextSize},
                      drawing_.Shortened(entry.text, room, style), style);
    column_top_ += kLineHeight;
  }
  column_top_ += kLineHeight / 2;
}

void Page::Table(const std::string& heading,
                 const std::vector<std::pair<std::string, std::string>>& rows) {
  TextStyle style;
  style.size = kTextSize;
  style.bold = true;
  const double right = drawing_.width() - kPageMargin;
  const double room = right - column_left_;
  drawing_.DrawText({column_left_, column_top_ + 24}, drawing_.Shortened(heading, room, style),
                    style);
  Stroke stroke{kFaintInk, 1.2};
  drawing_.DrawLine(std::array<PlotPoint, 2>{PlotPoint{column_left_, column_top_ + 36},
                                             {right, column_top_ + 36}},
                    stroke);
  column_top_ += 42;
  style.bold = false;
  for (const auto& [name, value] : rows) {
    TextStyle number = style;
    number.align = Align::kRight;
    drawing_.DrawText({column_left_, column_top_ + 22}, name, style);
    drawing_.DrawText({right, column_top_ + 22}, value, number);
    column_top_ += kLineHeight - 2;
  }
  column_top_ += kLineHeight / 2;
}

void Page::Remark(const std::string& text, Color color) {
  TextStyle style;
  style.size = kTextSize - 0.5;
  style.color = color;
  const double room = drawing_.width() - kPageMargin - column_left_;
  std::istringstream words(text);
  std::string line, word;
  const auto put = [&] {
    drawing_.DrawText({column_left_, column_top_ + 20}, drawing_.Shortened(line, room, style),
                      style);
    column_top_ += kLineHeight - 6;
    line.clear();
  };
  while (words >> word) {
    if (!line.empty() && drawing_.TextWidth(StrCat(line, " ", word), style) > room) put();
    line += StrCat(line.empty() ? "" : " ", word);
  }
  if (!line.empty()) put();
  column_top_ += kLineHeight / 3;
}

}  // namespace patchbay::workers
