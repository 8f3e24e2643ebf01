#include "workers/stream/view_window.h"

namespace patchbay::workers {
namespace {

/// The part of a level that becomes one axis of the chain's source.
struct Along {
  std::int64_t begin = 0, length = 0;
  ops::AxisMap map;
};

/// `source` pixels of the level from `at` on become `patch`, around which the chain wants `margin`.
Along AlongAxis(std::int64_t at, std::int64_t source, std::int64_t patch, std::int64_t margin) {
  ops::AxisMap map{.begin = at * patch - margin * source, .step = source, .unit = patch};
  const ops::AxisSpan span = ops::SpanOf(map, patch + 2 * margin);
  map.begin -= span.begin * patch;
  return {span.begin, span.end - span.begin, map};
}

}  // namespace

ViewWindow WindowOf(const plan::Plan& plan, const ops::Chain& chain, const plan::PatchSpec& spec,
                    std::size_t view) {
  const plan::PlannedView first = plan.ViewOf(spec.image, 0), own = plan.ViewOf(spec.image, view);
  const Box box = view == 0 ? spec.box : plan::WithSameCentre(spec.box, first, own);
  const Extent& patch = plan.config().patch;
  if (chain.is_volume() || own.source == patch) {
    return {own.level, chain.SourceBox(box, spec.key, plan.FactsOf(spec.image)), {}, {}};
  }
  const Extent wanted = chain.source_extent();
  const Along y = AlongAxis(box.y, own.source.y, patch.y, (wanted.y - patch.y) / 2);
  const Along x = AlongAxis(box.x, own.source.x, patch.x, (wanted.x - patch.x) / 2);
  return {own.level, Box2D(y.begin, x.begin, y.length, x.length), y.map, x.map};
}

}  // namespace patchbay::workers
