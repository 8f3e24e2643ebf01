// The distribution of levels.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "runtime/core/strings.h"
#include "workers/plots/axes.h"
#include "workers/plots/page.h"
#include "workers/plots/spectra_plots.h"

namespace patchbay::workers {
namespace {

using results::SpectraDocument;
using results::SpectraFigures;
using results::SpectraHistogram;
using results::SpectraSlide;

constexpr PlotPoint kHistogramTopLeft = {130, 196}, kHistogramBottomRight = {1270, 866};
constexpr double kHeadroom = 1.16;      ///< above the highest point: the mean's bracket
constexpr double kFloorIsAll = 0.9;     ///< share at the floor from which it sets the scale
constexpr double kFloorIsSaid = 0.001;  ///< share at the floor that is worth a remark
constexpr double kLeastLevelSpan = 20;  ///< dB
constexpr const char* kPercentNames[] = {"1 %", "5 %", "25 %", "median", "75 %", "95 %", "99 %"};

/// Percent of the coefficients in one dB, bin by bin.
std::vector<double> DensityOf(const SpectraHistogram& histogram) {
  std::vector<double> density;
  const auto total = static_cast<double>(histogram.Total());
  for (const std::uint64_t count : histogram.counts) {
    density.push_back(100 * static_cast<double>(count) / (total * histogram.bin_db));
  }
  return density;
}

double FloorShare(const SpectraHistogram& histogram) {
  if (histogram.counts.empty()) return 0;
  return static_cast<double>(histogram.counts[0]) / static_cast<double>(histogram.Total());
}

/// The level that all coefficients but a few of each frame (its mean brightness among them) stay
/// below.
double HighestLevel(const SpectraHistogram& histogram, std::int64_t frame) {
  const double share = 1 - 4 / static_cast<double>(frame * frame);
  const double wanted = share * static_cast<double>(histogram.Total());
  double below = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    below += static_cast<double>(histogram.counts[i]);
    if (below >= wanted) return histogram.low_db + static_cast<double>(i + 1) * histogram.bin_db;
  }
  return histogram.low_db + kLeastLevelSpan;
}

class HistogramPicture {
 public:
  explicit HistogramPicture(const SpectraDocument& document)
      : document_(document),
        cohort_(*document.cohort),
        main_(!document.cohort->channels ? kMain : kInk),
        page_(kPageWidth, kPageHeight, document),
        floor_is_all_(FloorShare(cohort_.histogram) > kFloorIsAll),
        panel_(page_.drawing(), kHistogramTopLeft, kHistogramBottomRight, LevelAxis(),
               DensityAxis()) {}

  Drawing Draw() {
    page_.Title("Distribution of spectral levels",
                StrCat("All coefficients of every frame, 20 log10 |X|, of ",
                       SlidesOf(document_.slides.size())));
    page_.BeginColumn(kColumnLeft, kHistogramTopLeft.y - 10);
    panel_.Grid();
    DrawSlides();
    DrawCohortCurve();
    DrawPercentiles();
    panel_.Frame();
    DrawMean();
    page_.Legend(legend_);
    DrawTable();
    return std::move(page_.drawing());
  }

 private:
  Axis LevelAxis() const {
    double high = HighestLevel(cohort_.histogram, document_.definition.frame);
    if (document_.slides.size() <= kMaxSlideLines) {
      for (const SpectraSlide& slide : document_.slides) {
        high = std::max(high, HighestLevel(slide.histogram, document_.definition.frame));
      }
    }
    const double low = cohort_.histogram.low_db;
    Scale scale{low, std::max(low + kLeastLevelSpan, std::ceil(high / 10) * 10), false};
    return {scale, "level, dB (0 dB = one grey level, the floor)", RoundTicks(scale, 12)};
  }

  Axis DensityAxis() const {
    double high = 0;
    const auto see = [&](const SpectraHistogram& histogram) {
      const std::vector<double> density = DensityOf(histogram);
      for (std::size_t i = floor_is_all_ ? 0 : 1; i < density.size(); ++i) {
        high = std::max(high, density[i]);
      }
    };
    see(cohort_.histogram);
    for (const SpectraFigures* channel : document_.cohort->Channels()) see(channel->histogram);
    // A slide that is nothing but floor must not flatten all the others.
    if (document_.slides.size() <= kMaxSlideLines) {
      const double most = high > 0 ? 3 * high : 1;
      for (const SpectraSlide& slide : document_.slides) {
        if (FloorShare(slide.histogram) <= kFloorIsAll) see(slide.histogram);
      }
      high = std::min(high, most);
    }
    const Scale scale{0, high > 0 ? high * kHeadroom : 1, false};
    return {scale, "share of the coefficients, % per dB", RoundTicks(scale, 8)};
  }

  std::vector<double> LevelsOf(const SpectraHistogram& histogram) const {
    std::vector<double> levels;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      levels.push_back(histogram.low_db + (static_cast<double>(i) + 0.5) * histogram.bin_db);
    }
    return levels;
  }

  void DrawSlides() {
    if (document_.slides.size() < 2) return;
    if (document_.slides.size() <= kMaxSlideLines) {
      const Stroke stroke{kSlides.Faded(0.75), 1.5};
      for (const SpectraSlide& slide : document_.slides) {
        const SpectraHistogram& histogram = slide.histogram;
        panel_.Line(LevelsOf(histogram), DensityOf(histogram), stroke);
      }
      legend_.push_back({LegendEntry::Kind::kLine, kSlides, 1.5, "each slide"});
      return;
    }
    std::vector<std::vector<double>> curves;
    for (const SpectraSlide& slide : document_.slides) {
      curves.push_back(DensityOf(slide.histogram));
      curves.back().resize(cohort_.histogram.counts.size());
    }
    const Bands bands = BandsOf(curves);
    const std::vector<double> levels = LevelsOf(cohort_.histogram);
    panel_.Band(levels, bands.quantiles[0], bands.quantiles[3], kSlides.Faded(0.28));
    panel_.Band(levels, bands.quantiles[1], bands.quantiles[2], kSlides.Faded(0.45));
    legend_.push_back({LegendEntry::Kind::kArea, kSlides.Faded(0.65), 0, "middle half of slides"});
    legend_.push_back({LegendEntry::Kind::kArea, kSlides.Faded(0.28), 0, "5 to 95 % of slides"});
  }

  void DrawCohortCurve() {
    const std::vector<const SpectraFigures*> channels = document_.cohort->Channels();
    const std::vector<double> levels = LevelsOf(cohort_.histogram);
    const std::vector<double> density = DensityOf(cohort_.histogram);
    const std::vector<double> nothing(density.size(), 0.0);
    panel_.Band(levels, nothing, density, main_.Faded(0.16));
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const Stroke stroke{kChannelColors[i], 2};
      panel_.Line(levels, DensityOf(channels[i]->histogram), stroke);
    }
    panel_.Line(levels, density, Stroke{main_, 3.2});
    // The floor's bin stands at the axis itself, where a line cannot be seen.
    const double top = std::min(panel_.y().scale.high, density.empty() ? 0 : density[0]);
    const double left = panel_.left();
    page_.drawing().FillRect(
        {left, panel_.AtY(top)},
        {panel_.AtX(cohort_.histogram.low_db + cohort_.histogram.bin_db) + 2, panel_.bottom()},
        main_);
    legend_.push_back({LegendEntry::Kind::kLine, main_, 3.2,
                       document_.slides.size() == 1 ? "the slide" : "cohort, every frame alike"});
    for (std::size_t i = 0; i < channels.size(); ++i) {
      legend_.push_back({LegendEntry::Kind::kLine, kChannelColors[i], 2, kChannelNames[i]});
    }
  }

  void DrawPercentiles() {
    const std::array levels = cohort_.percentiles.Values();
    const Stroke stroke{kGood, 1.8, 8};
    std::vector<double> wanted;
    for (const double level : levels) {
      wanted.push_back(std::clamp(panel_.AtX(level), panel_.left(), panel_.right()));
    }
    const std::vector<double> places =
        SpreadOut(wanted, 88, panel_.left() - 60, panel_.right() + 40);
    TextStyle style;
    style.size = 19;
    style.color = kGood;
    style.align = Align::kCenter;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      panel_.VerticalLine(levels[i], stroke);
      const Stroke leader{kGood, 1.4};
      page_.drawing().DrawLine(std::array<PlotPoint, 2>{PlotPoint{wanted[i], panel_.top()},
                                                        {places[i], panel_.top() - 20}},
                               leader);
      page_.drawing().DrawText({places[i], panel_.top() - 27}, kPercentNames[i], style);
    }
    legend_.push_back({LegendEntry::Kind::kDashed, kGood, 1.8, "percentiles"});
  }

  /// The mean as a line, one standard deviation to both sides as a bracket at the top.
  void DrawMean() {
    const double y = panel_.top() + 34;
    const Stroke stroke{kAccent, 3};
    panel_.VerticalLine(cohort_.mean_db, stroke);
    page_.drawing().Clip(kHistogramTopLeft, kHistogramBottomRight);
    const double low = panel_.AtX(cohort_.mean_db - cohort_.std_db);
    const double high = panel_.AtX(cohort_.mean_db + cohort_.std_db);
    page_.drawing().DrawLine(std::array<PlotPoint, 2>{PlotPoint{low, y}, {high, y}}, stroke);
    for (const double x : {low, high}) {
      page_.drawing().DrawLine(std::array<PlotPoint, 2>{PlotPoint{x, y - 10}, {x, y + 10}}, stroke);
    }
    page_.drawing().ClipNothing();
    legend_.push_back({LegendEntry::Kind::kBar, kAccent, 3, "mean ± standard deviation"});
  }

  void DrawTable() {
    const std::array levels = cohort_.percentiles.Values();
    std::vector<std::pair<std::string, std::string>> rows = {
        {"mean", Decibels(cohort_.mean_db)}, {"standard deviation", Decibels(cohort_.std_db)}};
    for (std::size_t i = 0; i < levels.size(); ++i) {
      rows.emplace_back(kPercentNames[i], Decibels(levels[i]));
    }
    page_.Table(document_.slides.size() == 1 ? "Slide " + document_.slides[0].id : "Cohort", rows);
    const double floor = FloorShare(cohort_.histogram);
    if (floor > kFloorIsSaid) {
      page_.Remark(StrCat(Digits(100 * floor, 1), " % of the coefficients are at the floor of ",
                          Digits(document_.definition.floor_db, 0), " dB."),
                   kAccent);
    }
    page_.Remark(
        StrCat("Not shown: frequency 0 of each frame, its mean brightness, ", "at the far right."));
  }

  const SpectraDocument& document_;
  const SpectraFigures& cohort_;
  Color main_;  ///< colour of the cohort
  Page page_;
  bool floor_is_all_;
  Panel panel_;
  std::vector<LegendEntry> legend_;
};

}  // namespace

Drawing DrawHistogram(const SpectraDocument& document) { return HistogramPicture(document).Draw(); }

}  // namespace patchbay::workers
