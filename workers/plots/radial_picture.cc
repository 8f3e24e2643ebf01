// Power against frequency, averaged over all directions.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/core/strings.h"
#include "workers/plots/axes.h"
#include "workers/plots/page.h"
#include "workers/plots/spectra_plots.h"

namespace patchbay::workers {
namespace {

using results::SpectraDocument;
using results::SpectraFigures;
using results::SpectraRadial;
using results::SpectraSlide;

constexpr PlotPoint kRadialTopLeft = {130, 206}, kRadialBottomRight = {1270, 866};
constexpr double kLeastPower = 1e-3;  ///< smaller values are drawn here: -30 dB
constexpr Color kCoarse = {214, 178, 60}, kFine = {70, 150, 190};

std::vector<double> PowerDb(const SpectraRadial& radial) {
  std::vector<double> levels;
  for (const double power : radial.power) {
    levels.push_back(10 * std::log10(std::max(power, kLeastPower)));
  }
  return levels;
}

bool HasNoPower(const SpectraRadial& radial) {
  return std::all_of(radial.power.begin(), radial.power.end(),
                     [](double power) { return power < kLeastPower; });
}

class RadialPicture {
 public:
  explicit RadialPicture(const SpectraDocument& document)
      : document_(document),
        cohort_(*document.cohort),
        in_um_(cohort_.radial.unit == "cycles/um"),
        step_(cohort_.radial.frequency_step),
        main_(!document.cohort->channels ? kMain : kInk),
        page_(kPageWidth, kPageHeight, document),
        panel_(page_.drawing(), kRadialTopLeft, kRadialBottomRight, FrequencyAxis(), PowerAxis()) {
    for (std::size_t i = 0; i < cohort_.radial.power.size(); ++i) {
      frequencies_.push_back(static_cast<double>(i + 1) * step_);
    }
  }

  Drawing Draw() {
    page_.Title("Radially averaged power spectrum",
                StrCat("Power at every scale, averaged over all directions, of ",
                       SlidesOf(document_.slides.size())));
    page_.BeginColumn(kColumnLeft, kRadialTopLeft.y - 10);
    DrawFocusBands();
    panel_.Grid();
    DrawSlides();
    DrawCohortCurve();
    DrawNyquist();
    panel_.Frame();
    DrawPeriods();
    page_.Legend(legend_);
    DrawTable();
    return std::move(page_.drawing());
  }

 private:
  double Nyquist() const { return step_ * static_cast<double>(cohort_.radial.power.size()); }
  /// Converts cycles per pixel to the cohort's unit.
  double FromPixels(double frequency) const { return 2 * Nyquist() * frequency; }

  Axis FrequencyAxis() const {
    const Scale scale{step_, Nyquist() * 1.08, true};
    return {scale, in_um_ ? "frequency, cycles/µm" : "frequency, cycles/pixel",
            RoundTicks(scale, 10)};
  }

  Axis PowerAxis() const {
    double low = 1e9, high = -1e9;
    const auto see = [&](const SpectraRadial& radial) {
      for (const double power : radial.power) {
        if (power < kLeastPower) continue;
        low = std::min(low, 10 * std::log10(power));
        high = std::max(high, 10 * std::log10(power));
      }
    };
    see(cohort_.radial);
    for (const SpectraFigures* channel : document_.cohort->Channels()) see(channel->radial);
    if (document_.slides.size() <= kMaxSlideLines) {
      for (const SpectraSlide& slide : document_.slides) see(slide.radial);
    }
    if (low > high) low = high = 0;
    const Scale scale = RoundScale(low - 1, high + 1);
    return {scale, "mean power |X|², dB", RoundTicks(scale, 9)};
  }

  /// Shades the bands that the focus score compares.
  void DrawFocusBands() {
    TextStyle style;
    style.size = 18;
    style.align = Align::kCenter;
    style.color = kFaintInk;
    const auto band = [&](double low, double high, Color color, const char* name) {
      const double left = panel_.AtX(FromPixels(low)), right = panel_.AtX(FromPixels(high));
      page_.drawing().FillRect({left, panel_.top()}, {right, panel_.bottom()}, color.Faded(0.14));
      page_.drawing().DrawText({(left + right) / 2, panel_.bottom() - 16}, name, style);
    };
    band(1.0 / 32, 1.0 / 8, kCoarse, "coarse");
    band(0.25, 0.5, kFine, "fine");
  }

  void DrawSlides() {
    if (document_.slides.size() < 2) return;
    if (document_.slides.size() <= kMaxSlideLines) {
      for (const SpectraSlide& slide : document_.slides) {
        panel_.Line(frequencies_, PowerDb(slide.radial), Stroke{kSlides.Faded(0.75), 1.5});
      }
      legend_.push_back({LegendEntry::Kind::kLine, kSlides, 1.5, "each slide"});
      return;
    }
    std::vector<std::vector<double>> curves;
    for (const SpectraSlide& slide : document_.slides) {
      curves.push_back(PowerDb(slide.radial));
    }
    const Bands bands = BandsOf(curves);
    panel_.Band(frequencies_, bands.quantiles[0], bands.quantiles[3], kSlides.Faded(0.28));
    panel_.Band(frequencies_, bands.quantiles[1], bands.quantiles[2], kSlides.Faded(0.45));
    legend_.push_back({LegendEntry::Kind::kArea, kSlides.Faded(0.65), 0, "middle half of slides"});
    legend_.push_back({LegendEntry::Kind::kArea, kSlides.Faded(0.28), 0, "5 to 95 % of slides"});
  }

  void DrawCohortCurve() {
    const std::vector<const SpectraFigures*> channels = document_.cohort->Channels();
    for (std::size_t i = 0; i < channels.size(); ++i) {
      panel_.Line(frequencies_, PowerDb(channels[i]->radial), Stroke{kChannelColors[i], 2});
    }
    panel_.Line(frequencies_, PowerDb(cohort_.radial), Stroke{main_, 3.2});
    legend_.push_back({LegendEntry::Kind::kLine, main_, 3.2,
                       document_.slides.size() == 1 ? "the slide" : "cohort, every frame alike"});
    for (std::size_t i = 0; i < channels.size(); ++i) {
      legend_.push_back({LegendEntry::Kind::kLine, kChannelColors[i], 2, kChannelNames[i]});
    }
    legend_.push_back({LegendEntry::Kind::kArea, kCoarse.Faded(0.3), 0, "coarse: 8 to 32 pixels"});
    legend_.push_back({LegendEntry::Kind::kArea, kFine.Faded(0.3), 0, "fine: 2 to 4 pixels"});
  }

  void DrawNyquist() {
    panel_.VerticalLine(Nyquist(), Stroke{kAccent, 2.2, 9});
    legend_.push_back(
        {LegendEntry::Kind::kDashed, kAccent, 2.2, "Nyquist: half a cycle per pixel"});
  }

  /// The second axis, above the panel: the length of one cycle.
  void DrawPeriods() {
    const Scale& scale = panel_.x().scale;
    const Scale periods{1 / scale.high, 1 / scale.low, true};
    TextStyle style;
    style.size = 19;
    style.color = kFaintInk;
    style.align = Align::kCenter;
    for (const Tick& tick : RoundTicks(periods, 10)) {
      const double x = panel_.AtX(1 / tick.value);
      const double length = tick.label.empty() ? 4 : 8;
      page_.drawing().DrawLine(
          std::array<PlotPoint, 2>{PlotPoint{x, panel_.top()}, {x, panel_.top() - length}},
          Stroke{kFaintInk, 1.6});
      page_.drawing().DrawText({x, panel_.top() - 15}, tick.label, style);
    }
    page_.drawing().DrawText({(panel_.left() + panel_.right()) / 2, panel_.top() - 44},
                             in_um_ ? "length of one cycle, µm" : "length of one cycle, pixels",
                             style);
  }

  void DrawTable() {
    std::vector<std::pair<std::string, std::string>> rows = {
        {"focus: fine over coarse", Digits(cohort_.focus_db, 1) + " dB"}};
    if (document_.cohort->mpp.has_value()) {
      rows.emplace_back("pixel", Digits(*document_.cohort->mpp, 4) + " µm");
    }
    rows.emplace_back("Nyquist", Digits(Nyquist(), 3) + (in_um_ ? " cycles/µm" : " cycles/pixel"));
    page_.Table(document_.slides.size() == 1 ? "Slide " + document_.slides[0].id : "Cohort", rows);
    if (!in_um_) {
      page_.Remark(document_.slides.size() == 1
                       ? "The slide does not say how large its pixels are, so frequencies are in "
                         "cycles per pixel."
                       : "Slides differ in pixel size, or do not say it, so frequencies are in "
                         "cycles per pixel.",
                   kAccent);
    }
    const auto powerless = static_cast<std::size_t>(
        std::count_if(document_.slides.begin(), document_.slides.end(),
                      [](const SpectraSlide& slide) { return HasNoPower(slide.radial); }));
    if (powerless == 0) return;
    page_.Remark(StrCat(SlidesOf(powerless), powerless == 1 ? " has" : " have",
                        " no power at any frequency: constant pixels, below the scale here."),
                 kAccent);
  }

  const SpectraDocument& document_;
  const SpectraFigures& cohort_;
  bool in_um_;
  double step_;
  Color main_;  ///< colour of the cohort
  Page page_;
  Panel panel_;
  std::vector<double> frequencies_;
  std::vector<LegendEntry> legend_;
};

}  // namespace

Drawing DrawRadial(const SpectraDocument& document) { return RadialPicture(document).Draw(); }

}  // namespace patchbay::workers
