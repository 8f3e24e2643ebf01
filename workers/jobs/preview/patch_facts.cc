#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "runtime/core/strings.h"
#include "runtime/model/ops/stain_references.h"
#include "runtime/model/plan/class_table.h"
#include "workers/jobs/preview/cards.h"
#include "workers/plots/axes.h"
#include "workers/stream/chain_options.h"
#include "workers/stream/patch_arrays.h"

namespace patchbay::workers {
namespace {

void AddGeometry(const ops::PatchGeometry& drawn, PatchCard& card) {
  if (drawn.whole_pixels) {
    const ops::WindowMap& w = drawn.window;
    const bool moved = w.transpose || w.reverse_y || w.reverse_x;
    card.facts.push_back(StrCat("drawn:", w.transpose ? " transposed" : "",
                                w.reverse_y ? " upside-down" : "", w.reverse_x ? " left-right" : "",
                                moved ? "" : " as it is"));
    return;
  }
  const ops::AffineMap& m = drawn.map;
  card.facts.push_back(StrCat("drawn: source y = ", Digits(m.yy, 3), " y + ", Digits(m.yx, 3),
                              " x + ", Digits(m.y0, 1)));
  card.facts.push_back(StrCat("drawn: source x = ", Digits(m.xy, 3), " y + ", Digits(m.xx, 3),
                              " x + ", Digits(m.x0, 1)));
  const ops::PixelField& field = drawn.field;
  if (field.points == 0) return;
  float most = 0;
  for (int i = 0; i < field.points * field.points; ++i) {
    most = std::max({most, std::abs(field.dy[i]), std::abs(field.dx[i])});
  }
  card.facts.push_back(StrCat("drawn: elastic, ", field.points, " x ", field.points,
                              " points, up to ", Digits(most, 1), " px"));
}

void AddFit(const plan::MacenkoFit& fit, PatchCard& card) {
  const std::string shipped = fit.fallback == plan::StainFallback::kNone
                                  ? std::string()
                                  : StrCat(" (built-in default: ", plan::NameOf(fit.fallback), ")");
  card.facts.push_back(StrCat("stain fit: up to ", Digits(fit.max_concentrations[0], 2), " and ",
                              Digits(fit.max_concentrations[1], 2), shipped));
}

void AddGeometry(const ops::VolumeGeometry& moved, PatchCard& card) {
  std::string mirrored;
  for (std::size_t a = 0; a < 3; ++a) mirrored += moved.mirrored[a] ? "zyx"[a] : '-';
  card.facts.push_back(StrCat("drawn: mirrored ", mirrored, moved.whole_voxels ? "" : ", turned",
                              moved.field.points > 0 ? ", bent" : ""));
}

std::string NameOfClass(const plan::LabelClasses& classes, std::int64_t value) {
  if (value == plan::kIgnoreClass) return "none";
  const auto named = std::find_if(classes.begin(), classes.end(),
                                  [&](const auto& one) { return one.value == value; });
  return named == classes.end() ? StrCat("class ", value) : named->name;
}

}  // namespace

void AddDraws(const plan::Plan& plan, const ops::Chain& chain, const plan::PatchSpec& spec,
              PatchCard& card) {
  const plan::PlannedView view = plan.ViewOf(spec.image, 0);
  const Extent& patch = plan.config().patch;
  if (view.source != patch) {
    card.facts.push_back(StrCat("resampled to ", patch.ToString()));
  }
  ops::PatchDraw draw{spec.key, ColoursOf(plan.images()[spec.image], nullptr), {}};
  if (chain.is_volume()) {
    draw.facts = plan.FactsOf(spec.image);
    AddGeometry(chain.DrawVolume(spec.key, draw.facts), card);
  } else {
    AddGeometry(chain.DrawGeometry(spec.key), card);
    const plan::PlannedImage& image = plan.images()[spec.image];
    if (image.macenko) AddFit(*image.macenko, card);
    if (plan::FindStainOp(plan.config()) && !image.macenko && !image.reinhard) {
      card.facts.push_back("not H&E: unnormalised");
    }
  }
  std::vector<std::string> said;
  draw.said = &said;
  chain.DrawSteps(draw);
  for (const std::string& one : said) card.facts.push_back(StrCat("drawn: ", one));
  card.facts.push_back(
      StrCat("seed ", spec.key.seed, ", epoch ", spec.key.epoch, ", ordinal ", spec.key.ordinal));
}

void AddMaskFacts(const plan::Plan& plan, const plan::PatchSpec& spec, std::size_t set,
                  const std::vector<std::uint8_t>& mask, PatchCard& card) {
  const plan::LabelClasses& classes = plan.images()[spec.image].LabelsOf(set).classes;
  std::array<std::size_t, 256> pixels{};
  for (const std::uint8_t value : mask) ++pixels[value];
  std::string shares;
  for (std::size_t value = 0; value < pixels.size(); ++value) {
    if (pixels[value] == 0) continue;
    const std::string name = value == plan::kIgnoreClass
                                 ? "ignored"
                                 : NameOfClass(classes, static_cast<std::int64_t>(value));
    const double share =
        100 * static_cast<double>(pixels[value]) / static_cast<double>(mask.size());
    shares += StrCat(shares.empty() ? "" : ", ", name, " ", Digits(share, 0), " %");
  }
  card.facts.push_back(StrCat(plan::MaskArrayOf(set), ": ", shares));
  if (set != 0 || !plan.config().labels.rule) return;
  const std::int64_t label = LabelOfMask(plan.config(), classes, mask);
  card.facts.push_back(StrCat("label: ", NameOfClass(classes, label), " (",
                              plan::NameOf(*plan.config().labels.rule), ")"));
}

}  // namespace patchbay::workers
