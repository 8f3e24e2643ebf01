#include "runtime/model/plan/magnification.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/core/strings.h"

namespace patchbay::plan {
namespace {

constexpr std::int64_t kMaxLevelSide = std::int64_t{1} << 31;
constexpr int kMaxLevel = 63;
constexpr std::size_t kFlatViewValues = 7, kDeepViewValues = 10;

Status Wrong(std::string_view cause) { return InvalidArgument("key 'patch.mpp': ", cause); }

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
  if (!row.is_array() || (row.size() != kFlatViewValues && row.size() != kDeepViewValues)) {
    return false;
  }
  const std::size_t counts = row.size() == kFlatViewValues ? 5 : 7;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i < counts ? !IsCount(row[i]) : !row[i].is_number()) return false;
  }
  return true;
}

bool IsSound(const PlannedView& view) {
  const auto is_scale = [](double d) { return std::isfinite(d) && d > 0; };
  const auto is_within = [](const Extent& e, std::int64_t most) {
    return e.z >= 1 && e.y >= 1 && e.x >= 1 && e.z <= most && e.y <= most && e.x <= most;
  };
  return view.level >= 0 && view.level <= kMaxLevel && is_within(view.size, kMaxLevelSide) &&
         is_within(view.source, kMaxSourceSide) && is_scale(view.downsample_z) &&
         is_scale(view.downsample_y) && is_scale(view.downsample_x);
}

Json RowOf(const PlannedView& v) {
  if (v.size.z == 1 && v.source.z == 1 && v.downsample_z == 1) {
    return {v.level, v.size.y, v.size.x, v.source.y, v.source.x, v.downsample_y, v.downsample_x};
  }
  return {v.level,    v.size.z,   v.size.y,       v.size.x,       v.source.z,
          v.source.y, v.source.x, v.downsample_z, v.downsample_y, v.downsample_x};
}

PlannedView ViewOfRow(const Json& row) {
  const auto count = [&row](std::size_t i) { return row[i].get<std::int64_t>(); };
  const auto scale = [&row](std::size_t i) { return row[i].get<double>(); };
  PlannedView v;
  v.level = static_cast<int>(std::min<std::int64_t>(count(0), kMaxLevel + 1));
  if (row.size() == kFlatViewValues) {
    v.size = Flat(count(1), count(2));
    v.source = Flat(count(3), count(4));
    v.downsample_y = scale(5);
    v.downsample_x = scale(6);
    return v;
  }
  v.size = {count(1), count(2), count(3)};
  v.source = {count(4), count(5), count(6)};
  v.downsample_z = scale(7);
  v.downsample_y = scale(8);
  v.downsample_x = scale(9);
  return v;
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
  if (!whole) return InvalidArgument("magnification: no mpp or size");
  for (const Json& one : *mpp) {
    if (!one.is_number() || !(one.get<double>() > 0)) {
      return InvalidArgument("magnification: mpp must be above 0");
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
    return Wrong(
        "the image does not say how large its pixels are: say it in the table's column mpp, or to "
        "`patchbay ingest --assume-mpp`; or use patch.level");
  }
  const double mpp_y = spacing.y->Micrometres(), mpp_x = spacing.x->Micrometres();
  if (levels.empty() || levels[0].z != 1) {
    return Wrong("is for 2-D images");
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
  for (const PlannedView& view : views) rows.push_back(RowOf(view));
  return rows;
}

StatusOr<std::vector<PlannedView>> ViewsFromJson(const Json& value) {
  if (!value.is_array() || value.size() > kMaxMpps) {
    return InvalidArgument("plan: views: not a list, or too long");
  }
  std::vector<PlannedView> views;
  for (const Json& row : value) {
    if (!IsView(row)) return InvalidArgument("plan: views: invalid view");
    const PlannedView view = ViewOfRow(row);
    if (!IsSound(view)) return InvalidArgument("plan: views: out of range");
    views.push_back(view);
  }
  return views;
}

}  // namespace patchbay::plan
