#include "runtime/plan/magnification.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/base/strings.h"

namespace patchbay::plan {
namespace {

constexpr std::int64_t kMaxLevelSide = std::int64_t{1} << 31;
constexpr int kMaxLevel = 63;
constexpr std::size_t kViewValues = 7;

Status Wrong(std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("key 'patch.mpp': ", cause));
}

/// How many pixels of level 0 one pixel of a level spans. Sizes are rounded: a whole number that
/// explains them is taken.
double DownsampleOf(std::int64_t finest, std::int64_t level) {
  const double ratio = static_cast<double>(finest) / static_cast<double>(level);
  const auto whole = static_cast<std::int64_t>(std::llround(ratio));
  const std::int64_t down = finest / whole, up = (finest + whole - 1) / whole;
  return level == down || level == up ? static_cast<double>(whole) : ratio;
}

PlannedView ViewOf(int index, const Extent& size, const Extent& finest) {
  PlannedView view;
  view.level = index;
  view.size = size;
  view.downsample_y = DownsampleOf(finest.y, size.y);
  view.downsample_x = DownsampleOf(finest.x, size.x);
  return view;
}

/// The larger of both axes.
double DeviationOf(const PlannedView& view, double mpp_y, double mpp_x, double wanted) {
  return std::max(std::abs(mpp_y * view.downsample_y / wanted - 1),
                  std::abs(mpp_x * view.downsample_x / wanted - 1));
}

/// Pixels of a level that span `pixels` of the wanted size.
std::int64_t SpanOf(std::int64_t pixels, double wanted, double level_mpp) {
  return std::max<std::int64_t>(
      1, std::llround(std::min(1e9, static_cast<double>(pixels) * wanted / level_mpp)));
}

Status CheckSource(const PlannedView& view, double wanted) {
  const Extent& s = view.source;
  if (s.y <= kMaxSourceSide && s.x <= kMaxSourceSide && s.Pixels() <= kMaxSourcePixels) {
    return absl::OkStatus();
  }
  return Wrong(StrCat(wanted, " would average ", s.y, " x ", s.x, " pixels of level ", view.level,
                      " into each patch, more than ", kMaxSourcePixels,
                      ": the image has no level near it (`patchbay ingest` builds them all)"));
}

StatusOr<PlannedView> ChooseView(const Magnification& asked, std::span<const Extent> levels,
                                 double mpp_y, double mpp_x, double wanted) {
  std::optional<PlannedView> near, finer;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    PlannedView view = ViewOf(static_cast<int>(i), levels[i], levels[0]);
    view.source = asked.patch;
    const double deviation = DeviationOf(view, mpp_y, mpp_x, wanted);
    if (deviation <= asked.tolerance &&
        (!near || deviation < DeviationOf(*near, mpp_y, mpp_x, wanted))) {
      near = view;
    }
    const bool is_finer = mpp_y * view.downsample_y < wanted && mpp_x * view.downsample_x < wanted;
    if (is_finer && (!finer || view.downsample_y > finer->downsample_y)) finer = view;
  }
  if (near) return *near;
  if (!finer && !asked.upsample) {
    return Wrong(StrCat(wanted, " um/px is finer than the finest level, of ",
                        std::max(mpp_y, mpp_x), "; ask for no less, or set patch.upsample: true"));
  }
  PlannedView view = finer ? *finer : ViewOf(0, levels[0], levels[0]);
  view.source = {asked.patch.z, SpanOf(asked.patch.y, wanted, mpp_y * view.downsample_y),
                 SpanOf(asked.patch.x, wanted, mpp_x * view.downsample_x)};
  PB_RETURN_IF_ERROR(CheckSource(view, wanted));
  return view;
}

std::int64_t SameCentre(std::int64_t begin, std::int64_t length, double from, double to,
                        std::int64_t span) {
  const double centre = (static_cast<double>(begin) + static_cast<double>(length) / 2) * from / to;
  return static_cast<std::int64_t>(std::floor(centre - static_cast<double>(span) / 2 + 0.5));
}

/// A whole number from 0 to the longest side of a level.
bool IsCount(const Json& value) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() <= kMaxLevelSide;
  return value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() <= kMaxLevelSide;
}

bool IsView(const Json& row) {
  if (!row.is_array() || row.size() != kViewValues) return false;
  for (std::size_t i = 0; i < kViewValues; ++i) {
    if (i < 5 ? !IsCount(row[i]) : !row[i].is_number()) return false;
  }
  return true;
}

bool IsSound(const PlannedView& view) {
  const auto is_scale = [](double d) { return std::isfinite(d) && d > 0; };
  return view.level >= 0 && view.level <= kMaxLevel && view.size.y >= 1 && view.size.x >= 1 &&
         view.size.y <= kMaxLevelSide && view.size.x <= kMaxLevelSide && view.source.y >= 1 &&
         view.source.x >= 1 && view.source.y <= kMaxSourceSide && view.source.x <= kMaxSourceSide &&
         is_scale(view.downsample_y) && is_scale(view.downsample_x);
}

}  // namespace

Json ToJson(const Magnification& m) {
  return {{"mpp", m.mpp},
          {"tolerance", m.tolerance},
          {"upsample", m.upsample},
          {"size", {m.patch.y, m.patch.x}}};
}

StatusOr<Magnification> MagnificationFromJson(const Json& value) {
  constexpr std::string_view kWhat = "magnification";
  Magnification m;
  PB_ASSIGN_OR_RETURN(m.tolerance, JsonDouble(value, "tolerance", kWhat));
  PB_ASSIGN_OR_RETURN(m.upsample, JsonBool(value, "upsample", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* mpp, JsonMember(value, "mpp", kWhat));
  PB_ASSIGN_OR_RETURN(const Json* size, JsonMember(value, "size", kWhat));
  const bool whole = mpp->is_array() && mpp->size() <= kMaxMpps && size->is_array() &&
                     size->size() == 2 && IsCount((*size)[0]) && IsCount((*size)[1]);
  if (!whole) return absl::InvalidArgumentError("magnification: no mpp or size");
  for (const Json& one : *mpp) {
    if (!one.is_number() || !(one.get<double>() > 0)) {
      return absl::InvalidArgumentError("magnification: mpp must be above 0");
    }
    m.mpp.push_back(one.get<double>());
  }
  m.patch = Flat((*size)[0].get<std::int64_t>(), (*size)[1].get<std::int64_t>());
  return m;
}

StatusOr<std::vector<PlannedView>> ChooseViews(const Magnification& magnification,
                                               std::span<const Extent> levels,
                                               const Spacing& spacing) {
  if (!spacing.y || !spacing.x) {
    return Wrong("the image does not say how large its pixels are; use patch.level");
  }
  const double mpp_y = spacing.y->Micrometres(), mpp_x = spacing.x->Micrometres();
  if (levels.empty() || levels[0].z != 1) {
    return Wrong("is for flat images");
  }
  std::vector<PlannedView> views;
  for (const double wanted : magnification.mpp) {
    PB_ASSIGN_OR_RETURN(views.emplace_back(),
                        ChooseView(magnification, levels, mpp_y, mpp_x, wanted));
  }
  return views;
}

Box WithSameCentre(const Box& box, const PlannedView& from, const PlannedView& to) {
  return Box2D(SameCentre(box.y, box.height, from.downsample_y, to.downsample_y, to.source.y),
               SameCentre(box.x, box.width, from.downsample_x, to.downsample_x, to.source.x),
               to.source.y, to.source.x);
}

Json ToJson(const std::vector<PlannedView>& views) {
  Json rows = Json::array();
  for (const PlannedView& v : views) {
    rows.push_back(
        {v.level, v.size.y, v.size.x, v.source.y, v.source.x, v.downsample_y, v.downsample_x});
  }
  return rows;
}

StatusOr<std::vector<PlannedView>> ViewsFromJson(const Json& value) {
  if (!value.is_array() || value.size() > kMaxMpps) {
    return absl::InvalidArgumentError("plan: views: no list, or too long");
  }
  std::vector<PlannedView> views;
  for (const Json& row : value) {
    if (!IsView(row)) return absl::InvalidArgumentError("plan: views: not a view");
    PlannedView v;
    v.level = static_cast<int>(std::min<std::int64_t>(row[0].get<std::int64_t>(), kMaxLevel + 1));
    v.size = Flat(row[1].get<std::int64_t>(), row[2].get<std::int64_t>());
    v.source = Flat(row[3].get<std::int64_t>(), row[4].get<std::int64_t>());
    v.downsample_y = row[5].get<double>();
    v.downsample_x = row[6].get<double>();
    if (!IsSound(v)) return absl::InvalidArgumentError("plan: views: out of range");
    views.push_back(v);
  }
  return views;
}

}  // namespace patchbay::plan
