// Every slide of the cohort: its mean and spread, and how sharp it is.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/results/usual_range.h"
#include "workers/plots/axes.h"
#include "workers/plots/page.h"
#include "workers/plots/spectra_plots.h"

namespace patchbay::workers {
namespace {

using results::kLeastUsualSlides;
using results::SpectraDocument;
using results::SpectraFigures;
using results::SpectraSlide;
using results::UsualRange;

constexpr double kTop = 150, kBelow = 240;  ///< pixels above and below the panels
constexpr double kRowHeight = 30, kLeastHeight = 210, kManyHeight = 860;
constexpr double kNamesLeft = 290, kRanksLeft = 160;  ///< where panels begin beside names, ranks
constexpr double kLevelWidth = 560, kPanelGap = 46, kFocusWidth = 330;
constexpr std::size_t kMaxNotes = 24;  ///< outliers named at the side of a large cohort

/// Some reason begins with `word`.
bool HasReason(const SpectraSlide& slide, std::string_view word) {
  return std::any_of(slide.outlier_reasons.begin(), slide.outlier_reasons.end(),
                     [&](const std::string& reason) { return reason.rfind(word, 0) == 0; });
}

bool IsFlat(const SpectraSlide& slide) { return HasReason(slide, "flat"); }

class CohortPicture {
 public:
  explicit CohortPicture(const SpectraDocument& document)
      : document_(document),
        many_(document.slides.size() > kMaxSlideLines),
        judged_(std::count_if(document.slides.begin(), document.slides.end(),
                              [](const SpectraSlide& slide) { return !IsFlat(slide); }) >=
                static_cast<std::ptrdiff_t>(kLeastUsualSlides)),
        height_(many_ ? kManyHeight
                      : std::max(kLeastHeight,
                                 kRowHeight * static_cast<double>(document.slides.size()) + 16)),
        left_(many_ ? kRanksLeft : kNamesLeft),
        focus_left_(left_ + kLevelWidth + kPanelGap),
        notes_left_(focus_left_ + kFocusWidth + 44),
        page_(kPageWidth, static_cast<int>(kTop + height_ + kBelow), document),
        order_(document.slides.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return All(a).mean_db < All(b).mean_db; });
    mean_ = UsualOf([](const SpectraFigures& figures) { return figures.mean_db; });
    std_ = UsualOf([](const SpectraFigures& figures) { return figures.std_db; });
    focus_ = UsualOf([](const SpectraFigures& figures) { return figures.focus_db; });
  }

  Drawing Draw() {
    page_.Title("Slide by slide", StrCat("Mean level with its standard deviation, and focus, of ",
                                         SlidesOf(document_.slides.size()),
                                         many_ ? ", sorted by mean level" : ", lowest mean first"));
    Panel levels(page_.drawing(), {left_, kTop}, {left_ + kLevelWidth, kTop + height_}, LevelAxis(),
                 RankAxis(true));
    Panel focus(page_.drawing(), {focus_left_, kTop}, {focus_left_ + kFocusWidth, kTop + height_},
                FocusAxis(), RankAxis(false));
    DrawMiddle(levels, mean_);
    DrawMiddle(focus, focus_);
    many_ ? DrawMany(levels, focus) : DrawFew(levels, focus);
    levels.Frame();
    focus.Frame();
    DrawOutliers(levels, focus);
    DrawKey();
    return std::move(page_.drawing());
  }

 private:
  const SpectraSlide& Slide(std::size_t rank) const { return document_.slides[order_[rank]]; }
  const SpectraFigures& All(std::size_t slide) const { return document_.slides[slide]; }
  /// Where a rank lies on the panels' upright scale.
  double Row(std::size_t rank) const {
    return static_cast<double>(order_.size()) - 1 - static_cast<double>(rank);
  }

  template <typename Figure>
  UsualRange UsualOf(Figure figure) const {
    std::vector<double> values;
    for (const SpectraSlide& slide : document_.slides) {
      if (!IsFlat(slide)) values.push_back(figure(slide));
    }
    return results::UsualRangeOf(std::move(values));
  }

  Axis LevelAxis() const {
    double low = 1e9, high = -1e9;
    for (const SpectraSlide& slide : document_.slides) {
      low = std::min(low, slide.mean_db - slide.std_db);
      high = std::max(high, slide.mean_db + slide.std_db);
    }
    const Scale scale = RoundScale(low, high);
    return {scale, "mean level ± standard deviation, dB", RoundTicks(scale, 7)};
  }

  Axis FocusAxis() const {
    double low = 1e9, high = -1e9;
    for (const SpectraSlide& slide : document_.slides) {
      if (IsFlat(slide)) continue;  // nothing to focus on: far to the left, at the panel's edge
      low = std::min(low, slide.focus_db);
      high = std::max(high, slide.focus_db);
    }
    if (low > high) low = high = 0;
    const Scale scale = RoundScale(low - 0.5, high + 0.5);
    return {scale, "focus, dB (right is sharper)", RoundTicks(scale, 4)};
  }

  Axis RankAxis(bool named) const {
    const double count = static_cast<double>(order_.size());
    Axis axis{{-0.5, count - 0.5, false}, "", {}};
    if (!many_ || !named) return axis;
    axis.title = "slides, lowest mean at the top";
    for (const Tick& tick : RoundTicks({1, count, false}, 8)) {
      axis.ticks.push_back({count - tick.value, tick.label});
    }
    return axis;
  }

  /// The median and, where there is a rule, how far a slide may lie from it.
  void DrawMiddle(Panel& panel, const UsualRange& usual) {
    if (judged_) {
      const double left = std::max(panel.AtX(usual.median - usual.limit), panel.left());
      const double right = std::min(panel.AtX(usual.median + usual.limit), panel.right());
      page_.drawing().FillRect({left, panel.top()}, {right, panel.bottom()}, kGood.Faded(0.09));
    }
    panel.Grid();
    if (order_.size() > 1) panel.VerticalLine(usual.median, Stroke{kGood, 2, 8});
  }

  /// A slide's disc in the focus panel; one beyond the scale stays at the edge.
  void DrawFocus(const Panel& focus, std::size_t rank, double radius, Color color) {
    const PlotPoint at = focus.At(Slide(rank).focus_db, Row(rank));
    page_.drawing().FillDisc({std::clamp(at.x, focus.left(), focus.right()), at.y}, radius, color);
  }

  void DrawFew(Panel& levels, Panel& focus) {
    TextStyle style;
    style.size = 18;
    style.align = Align::kRight;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      const SpectraFigures& all = Slide(rank);
      const double y = levels.AtY(Row(rank));
      const Color color = Slide(rank).outlier_reasons.empty() ? kMain : kAccent;
      style.color = Slide(rank).outlier_reasons.empty() ? kInk : kAccent;
      page_.drawing().DrawText({left_ - 16, y + 6},
                               page_.drawing().Shortened(Slide(rank).id, left_ - 40, style), style);
      const Stroke stroke{color, 2.4};
      const double low = levels.AtX(all.mean_db - all.std_db);
      const double high = levels.AtX(all.mean_db + all.std_db);
      page_.drawing().DrawLine(std::array<PlotPoint, 2>{PlotPoint{low, y}, {high, y}}, stroke);
      for (const double x : {low, high}) {
        page_.drawing().DrawLine(std::array<PlotPoint, 2>{PlotPoint{x, y - 6}, {x, y + 6}}, stroke);
      }
      page_.drawing().FillDisc(levels.At(all.mean_db, Row(rank)), 6, color);
      DrawFocus(focus, rank, 6, color);
    }
  }

  void DrawMany(Panel& levels, Panel& focus) {
    std::vector<PlotPoint> middle, outline;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      const SpectraFigures& all = Slide(rank);
      middle.push_back(levels.At(all.mean_db, Row(rank)));
      outline.push_back(levels.At(all.mean_db + all.std_db, Row(rank)));
    }
    for (std::size_t rank = order_.size(); rank-- > 0;) {
      const SpectraFigures& all = Slide(rank);
      outline.push_back(levels.At(all.mean_db - all.std_db, Row(rank)));
    }
    page_.drawing().FillPolygon(outline, kMain.Faded(0.22));
    page_.drawing().DrawLine(middle, Stroke{kMain, 3});
    // Dots are fainter and smaller the more there are, so that dense places show.
    const double share = static_cast<double>(kMaxSlideLines) / static_cast<double>(order_.size());
    const Color dot = kMain.Faded(std::clamp(4 * share, 0.35, 0.9));
    const double radius = std::clamp(12 * std::sqrt(share), 1.8, 5.0);
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      DrawFocus(focus, rank, radius, dot);
    }
  }

  double Severity(std::size_t rank) const {
    const SpectraFigures& all = Slide(rank);
    const auto distance = [](const UsualRange& usual, double value) {
      return usual.limit > 0 ? std::fabs(value - usual.median) / usual.limit : 0.0;
    };
    return std::max(
        {distance(mean_, all.mean_db), distance(std_, all.std_db), distance(focus_, all.focus_db)});
  }

  /// Ranks of the outliers that get a note: all, or the worst.
  std::vector<std::size_t> NotedRanks(std::size_t& outliers) const {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      if (!Slide(rank).outlier_reasons.empty()) ranks.push_back(rank);
    }
    outliers = ranks.size();
    const std::size_t most = many_ ? kMaxNotes : ranks.size();
    if (ranks.size() <= most) return ranks;
    std::stable_sort(ranks.begin(), ranks.end(),
                     [&](std::size_t a, std::size_t b) { return Severity(a) > Severity(b); });
    ranks.resize(most);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  /// In the panel that shows why.
  void MarkOutliers(Panel& levels, Panel& focus) {
    for (std::size_t rank = 0; rank < order_.size(); ++rank) {
      const SpectraSlide& slide = Slide(rank);
      if (HasReason(slide, "mean") || HasReason(slide, "std") || IsFlat(slide)) {
        page_.drawing().FillDisc(levels.At(slide.mean_db, Row(rank)), 4.5, kAccent);
      }
      if (HasReason(slide, "focus") || IsFlat(slide)) DrawFocus(focus, rank, 4.5, kAccent);
    }
  }

  void DrawOutliers(Panel& levels, Panel& focus) {
    if (many_) MarkOutliers(levels, focus);
    std::size_t outliers = 0;
    const std::vector<std::size_t> ranks = NotedRanks(outliers);
    std::vector<double> wanted;
    for (const std::size_t rank : ranks) wanted.push_back(focus.AtY(Row(rank)));
    const std::vector<double> places =
        SpreadOut(wanted, kRowHeight, kTop + 14, kTop + height_ - 14);
    TextStyle style;
    style.size = 18;
    style.color = kAccent;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const SpectraSlide& slide = Slide(ranks[i]);
      const std::string reasons = StrJoin(slide.outlier_reasons, ", ");
      const double room = kPageWidth - notes_left_ - 24;
      const std::array<PlotPoint, 3> leader = {PlotPoint{focus.right() + 4, wanted[i]},
                                               {focus.right() + 14, wanted[i]},
                                               {notes_left_ - 8, places[i]}};
      page_.drawing().DrawLine(leader, Stroke{kAccent, 1.3});
      const double id_room = std::max(0.0, room - page_.drawing().TextWidth(": " + reasons, style));
      const std::string text =
          many_ ? StrCat(page_.drawing().Shortened(slide.id, id_room, style), ": ", reasons)
                : reasons;
      page_.drawing().DrawText({notes_left_, places[i] + 6},
                               page_.drawing().Shortened(text, room, style), style);
    }
    SayOutliers(outliers, ranks.size());
  }

  void SayOutliers(std::size_t outliers, std::size_t noted) {
    TextStyle style;
    style.size = 19;
    style.bold = true;
    style.color = outliers > 0 ? kAccent : kFaintInk;
    std::string text = outliers == 0
                           ? std::string("no outliers")
                           : StrCat(Grouped(outliers), " outlier", outliers > 1 ? "s" : "");
    if (noted < outliers) text += StrCat("; the ", noted, " furthest out:");
    if (outliers == 0 && !judged_) {
      text = StrCat("outliers: judged from ", kLeastUsualSlides, " slides on");
    }
    page_.drawing().DrawText({notes_left_, kTop - 14}, text, style);
  }

  void DrawKey() {
    page_.BeginColumn(left_, kTop + height_ + 92);
    std::vector<LegendEntry> left = {
        many_ ? LegendEntry{LegendEntry::Kind::kArea, kMain.Faded(0.22), 0,
                            "mean ± standard deviation of each slide"}
              : LegendEntry{LegendEntry::Kind::kBar, kMain, 2.4,
                            "mean ± standard deviation of a slide's levels"}};
    const bool outliers =
        std::any_of(document_.slides.begin(), document_.slides.end(),
                    [](const SpectraSlide& slide) { return !slide.outlier_reasons.empty(); });
    if (outliers) {
      left.push_back({LegendEntry::Kind::kDisc, kAccent, many_ ? 4.5 : 6, "outlier"});
    }
    page_.Legend(left);
    page_.BeginColumn(focus_left_, kTop + height_ + 92);
    if (order_.size() < 2) return;
    std::vector<LegendEntry> right = {
        {LegendEntry::Kind::kDashed, kGood, 2, "median of the slides"}};
    if (judged_) {
      right.push_back({LegendEntry::Kind::kArea, kGood.Faded(0.16), 0,
                       "within 3.5 robust standard deviations of it"});
    }
    page_.Legend(right);
  }

  const SpectraDocument& document_;
  bool many_;
  bool judged_;                            ///< there are enough slides to have outliers
  double height_;                          ///< height of the panels
  double left_, focus_left_, notes_left_;  ///< where the panels and the notes begin
  Page page_;
  std::vector<std::size_t> order_;  ///< slides by mean level
  UsualRange mean_, std_, focus_;
};

}  // namespace

Drawing DrawCohort(const SpectraDocument& document) { return CohortPicture(document).Draw(); }

}  // namespace patchbay::workers
