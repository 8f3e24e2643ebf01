#include "runtime/model/resolution/magnification.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/core/fields.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"

namespace patchbay::plan {
namespace {

constexpr std::int64_t kMaxLevelSide = std::int64_t{1} << 31;
constexpr int kMaxLevel = 63;
/// Where the numbers of z stand in a row of a view, which one of a flat image leaves out.
constexpr std::size_t kDepthPlaces[] = {1, 4, 7};
constexpr std::size_t kFlatViewValues = 7;

Status WrongMpp(std::string_view cause) { return InvalidArgument("key 'patch.mpp': ", cause); }

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
  return WrongMpp(StrCat(wanted, " would average ", s.y, " x ", s.x, " pixels of level ",
                         view.level, " into each patch, more than ", kMaxSourcePixels,
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
    return WrongMpp(StrCat(wanted, " um/px is finer than the finest level, of ",
                           std::max(mpp_y, mpp_x),
                           "; ask for no less, or set patch.upsample: true"));
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

struct MagnificationText {
  std::vector<double> mpp;
  double tolerance = 0;
  bool upsample = false;
  std::array<std::int64_t, 2> size{};

  static constexpr auto Fields() {
    using T = MagnificationText;
    return AsFullObject(Field("mpp", &T::mpp).Within(kPositive, kLargest).Counted(0, kMaxMpps),
                        Field("tolerance", &T::tolerance), Field("upsample", &T::upsample),
                        Field("size", &T::size).Within(0, kMaxLevelSide));
  }
};

struct ViewRow {
  int level = 0;
  std::int64_t z = 1, y = 1, x = 1, source_z = 1, source_y = 1, source_x = 1;
  double downsample_z = 1, downsample_y = 1, downsample_x = 1;

  static constexpr auto Fields() {
    using T = ViewRow;
    return AsArray(
        Field("level", &T::level).Within(0, kMaxLevel), Field("z", &T::z).Within(1, kMaxLevelSide),
        Field("y", &T::y).Within(1, kMaxLevelSide), Field("x", &T::x).Within(1, kMaxLevelSide),
        Field("source_z", &T::source_z).Within(1, kMaxSourceSide),
        Field("source_y", &T::source_y).Within(1, kMaxSourceSide),
        Field("source_x", &T::source_x).Within(1, kMaxSourceSide),
        Field("downsample_z", &T::downsample_z).Within(kPositive, kLargest),
        Field("downsample_y", &T::downsample_y).Within(kPositive, kLargest),
        Field("downsample_x", &T::downsample_x).Within(kPositive, kLargest));
  }
};

}  // namespace

Json ToJson(const Magnification& m) {
  return JsonOf(MagnificationText{m.mpp, m.tolerance, m.upsample, {m.patch.y, m.patch.x}});
}

StatusOr<Magnification> MagnificationFromJson(const Json& value) {
  PB_ASSIGN_OR_RETURN(auto text, FromJson<MagnificationText>(value, "magnification"));
  return Magnification{std::move(text.mpp), text.tolerance, text.upsample,
                       Flat(text.size[0], text.size[1])};
}

StatusOr<std::vector<PlannedView>> ChooseViews(const Magnification& magnification,
                                               std::span<const Extent> levels,
                                               const Spacing& spacing) {
  if (!spacing.y || !spacing.x) {
    return WrongMpp(
        "the image does not say how large its pixels are: say it in the table's column mpp, or to "
        "`patchbay ingest --assume-mpp`; or use patch.level");
  }
  const double mpp_y = spacing.y->Micrometres(), mpp_x = spacing.x->Micrometres();
  if (levels.empty() || levels[0].z != 1) {
    return WrongMpp("is for 2-D images");
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
    Json row = JsonOf(ViewRow{v.level, v.size.z, v.size.y, v.size.x, v.source.z, v.source.y,
                              v.source.x, v.downsample_z, v.downsample_y, v.downsample_x});
    const bool is_flat = v.size.z == 1 && v.source.z == 1 && v.downsample_z == 1;
    for (auto at = std::rbegin(kDepthPlaces); is_flat && at != std::rend(kDepthPlaces); ++at) {
      row.erase(*at);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

StatusOr<std::vector<PlannedView>> ViewsFromJson(const Json& value) {
  Json deep = value;
  for (std::size_t i = 0; deep.is_array() && i < deep.size(); ++i) {
    Json& row = deep[i];
    const bool is_flat = row.is_array() && row.size() == kFlatViewValues;
    for (const std::size_t at : kDepthPlaces) {
      if (is_flat) row.insert(row.begin() + static_cast<std::ptrdiff_t>(at), 1);
    }
  }
  PB_ASSIGN_OR_RETURN(const auto rows, FromJson<std::vector<ViewRow>>(deep, "views"));
  if (rows.size() > kMaxMpps) return InvalidArgument("views: more than ", kMaxMpps);
  std::vector<PlannedView> views;
  for (const ViewRow& r : rows) {
    views.push_back({r.level,
                     {r.z, r.y, r.x},
                     {r.source_z, r.source_y, r.source_x},
                     r.downsample_y,
                     r.downsample_x,
                     r.downsample_z});
  }
  return views;
}

}  // namespace patchbay::plan
