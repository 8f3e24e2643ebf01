// The common parts of one analysis's pictures: colours, title, legend, the table at the side, the
// source line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/model/results/spectra_document.h"
#include "workers/plots/drawing.h"

namespace patchbay::workers {

// Every kind of colour vision tells these colours apart, and in grey their brightness does.
inline constexpr Color kWhite = {255, 255, 255}, kInk = {40, 40, 40}, kFaintInk = {110, 114, 120};
inline constexpr Color kMain = {0, 90, 160}, kSlides = {120, 126, 134}, kAccent = {205, 80, 0};
inline constexpr Color kGood = {0, 130, 95};
inline constexpr Color kChannelColors[] = {{190, 40, 40}, {0, 130, 95}, {0, 90, 190}};
inline constexpr const char* kChannelNames[] = {"red", "green", "blue"};

/// Pixels; the height is that of a picture with one panel.
inline constexpr int kPageWidth = 1720, kPageHeight = 1040;
/// Where the column beside one panel begins.
inline constexpr double kColumnLeft = 1320;

/// The most slides that have a line each; more are drawn as bands.
inline constexpr std::size_t kMaxSlideLines = 40;

struct LegendEntry {
  enum class Kind { kLine, kDashed, kArea, kDisc, kBar };
  Kind kind = Kind::kLine;
  Color color;
  double width = 2;
  std::string text;
};

/// A white picture with title, subtitle and, at the bottom, the measure and its source.
class Page {
 public:
  Page(int width, int height, const results::SpectraDocument& document);

  Drawing& drawing() { return drawing_; }
  void Title(const std::string& title, const std::string& subtitle);

  /// The column at the right, from `left` on; blocks follow each other downwards.
  void BeginColumn(double left, double top);
  void Legend(const std::vector<LegendEntry>& entries);
  /// A heading, then names left and values right.
  void Table(const std::string& heading,
             const std::vector<std::pair<std::string, std::string>>& rows);
  /// Lines of a remark, wrapped at spaces.
  void Remark(const std::string& text, Color color = kFaintInk);

 private:
  void Source(const results::SpectraDocument& document);

  Drawing drawing_;
  double column_left_ = 0, column_top_ = 0;
};

/// "12.34 dB".
std::string Decibels(double value);
/// "1 slide", "3,505 slides".
std::string SlidesOf(std::size_t count);

}  // namespace patchbay::workers
