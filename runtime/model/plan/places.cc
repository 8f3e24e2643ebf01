#include "runtime/model/plan/places.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "runtime/core/random.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/image_views.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/positions/tissue_area.h"
#include "runtime/model/positions/tissue_filter.h"

namespace patchbay::plan {
namespace {

Status RefusedPlaces(std::string_view cause) {
  return InvalidArgument("places of an image: ", cause);
}

/// The background of a class map of `patchbay map` with thresholds (results::ClassTableOf).
constexpr std::string_view kNoneOfThem = "none";

/// The class of a mask of tissue; nullptr where there is background only. InvalidArgument for an
/// index that is not a mask.
StatusOr<const ClassCells*> TissueOf(const PositionIndex& index, const RunConfig& config) {
  std::vector<const ClassCells*> classes;
  std::vector<std::string> names;
  for (const ClassCells& one : index.classes) {
    if (one.name == kBackgroundClass) continue;
    classes.push_back(&one);
    names.push_back(one.name);
  }
  if (classes.size() == 2) {
    std::erase_if(classes, [](const ClassCells* one) { return one->name == kNoneOfThem; });
  }
  if (classes.empty()) return nullptr;
  if (classes.size() == 1) return classes.front();
  return RefusedPlaces(StrCat("key 'sampling.tissue': set '", config.tissue_set,
                              "': not a mask of tissue, it has the classes ", StrJoin(names, ", "),
                              ": name a set with one class besides '", kBackgroundClass, "' or '",
                              kNoneOfThem, "' (sampling.tissue.set); ",
                              "`patchbay labels tissue` makes one"));
}

}  // namespace

bool NeedsPlaces(const RunConfig& config) {
  return config.tissue_fraction.has_value() || !config.class_weights.empty() ||
         config.foreground.has_value();
}

/// The number of `source` pixels before the one under the middle of the centre pixel of the `patch`
/// that they become.
std::int64_t BeforeCentre(std::int64_t source, std::int64_t patch) {
  return (patch / 2 * 2 + 1) * source / (2 * patch);
}

/// Level 0 and the level of a view, along one axis: the pixels of either that cover the same
/// length.
struct AxisScale {
  std::int64_t full, level;
};
AxisScale ScaleOf(double downsample, std::int64_t full, std::int64_t level) {
  constexpr double kMostWhole = 1 << 30;
  const bool whole = downsample == std::floor(downsample) && downsample <= kMostWhole;
  return whole ? AxisScale{static_cast<std::int64_t>(downsample), 1} : AxisScale{full, level};
}

/// The tissue that a place needs.
struct ImagePlaces::TissueWanted {
  std::optional<TissueArea> area;  ///< none: any place is taken
  std::int64_t fraction = 0;       ///< the least part of a patch, in kFractionUnits
  std::uint32_t mask_step = 1u << 10;
};

namespace {

/// The cells that are taken, as a set.
struct ListedCells {
  explicit ListedCells(std::uint32_t step) : cells(step) {}

  Status Add(Point first, std::uint64_t bits, std::uint64_t /*goes_on*/) {
    while (bits != 0) {
      const int left = std::countr_zero(bits), count = std::countr_one(bits >> left);
      first.x += left;
      PB_RETURN_IF_ERROR(
          cells.Append({static_cast<std::uint32_t>(first.z), static_cast<std::uint32_t>(first.y),
                        static_cast<std::uint32_t>(first.x), static_cast<std::uint32_t>(count)}));
      if (left + count == 64) break;
      first.x += count;
      bits >>= left + count;
    }
    return absl::OkStatus();
  }

  CellSet cells;
};

/// The same without the set, refused where that would be.
struct CountedCells {
  explicit CountedCells(std::uint32_t /*step*/) {}

  Status Add(const Point& /*first*/, std::uint64_t bits, std::uint64_t goes_on) {
    cells += static_cast<std::uint64_t>(std::popcount(bits));
    runs += static_cast<std::uint64_t>(std::popcount(bits & ~(bits << 1 | goes_on)));
    return absl::OkStatus();
  }

  std::uint64_t cells = 0, runs = 0;
};

/// Filters the sets of `numbers` row by row, so that they share what the filter finds of a row.
template <typename Taken>
Status FilterTogether(TissueFilter& filter, const std::vector<const CellSet*>& sets,
                      const std::vector<std::size_t>& numbers, std::vector<Taken>& taken) {
  constexpr std::uint64_t kNoRow = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::span<const CellRun>> left;
  for (const std::size_t number : numbers) left.emplace_back(sets[number]->runs());
  for (std::uint64_t row = 0; row != kNoRow;) {
    std::uint64_t next_row = kNoRow;
    for (std::size_t i = 0; i < left.size(); ++i) {
      std::span<const CellRun> runs = left[i];  // not looked up again for each run
      Taken& of_set = taken[numbers[i]];
      for (; !runs.empty() && runs.front().y == row; runs = runs.subspan(1)) {
        PB_RETURN_IF_ERROR(filter.Filter(runs.front(), of_set));
      }
      left[i] = runs;
      if (!runs.empty()) next_row = std::min<std::uint64_t>(next_row, runs.front().y);
    }
    row = next_row;
  }
  return absl::OkStatus();
}

}  // namespace

/// The lattice of a set's cells.
PatchLattice ImagePlaces::LatticeOf(std::uint32_t step) const {
  const auto along = [&](std::int64_t Extent::*axis, std::int64_t of_centres) {
    PatchAxis one{.full = full_.*axis,
                  .level = size_.*axis,
                  .source = source_.*axis,
                  .step = stride_.*axis,
                  .before_centre = std::nullopt};
    if (kind_ == Kind::kCentres) {
      one.step = of_centres;
      one.before_centre = before_centre_.*axis;
    }
    return one;
  };
  return {along(&Extent::z, 1), along(&Extent::y, step), along(&Extent::x, step)};
}

/// Adds sets in their order, of the cells that have enough tissue.
Status ImagePlaces::AddFiltered(const TissueWanted& tissue,
                                const std::vector<const CellSet*>& sets) {
  if (!tissue.area) {
    for (const CellSet* set : sets) {
      if (is_listed_) sets_.push_back(*set);
      if (!is_listed_) counted_.push_back(set->size());
    }
    return absl::OkStatus();
  }
  if (is_listed_) {
    PB_ASSIGN_OR_RETURN(const std::vector<ListedCells> taken, Filtered<ListedCells>(tissue, sets));
    for (const ListedCells& one : taken) sets_.push_back(one.cells);  // a copy has no room to spare
    return absl::OkStatus();
  }
  PB_ASSIGN_OR_RETURN(const std::vector<CountedCells> taken, Filtered<CountedCells>(tissue, sets));
  for (const CountedCells& one : taken) {
    if (one.runs > CellSet::kMaxRuns) {
      return RefusedPlaces(StrCat("more than ", CellSet::kMaxRuns, " runs of cells"));
    }
    counted_.push_back(one.cells);
  }
  return absl::OkStatus();
}

template <typename Taken>
StatusOr<std::vector<Taken>> ImagePlaces::Filtered(const TissueWanted& tissue,
                                                   const std::vector<const CellSet*>& sets) const {
  std::vector<Taken> taken;
  std::map<std::uint32_t, std::vector<std::size_t>> alike;
  for (const CellSet* set : sets) {
    alike[set->step()].push_back(taken.size());
    taken.emplace_back(set->step());
  }
  for (const auto& [step, numbers] : alike) {
    TissueFilter filter(*tissue.area, LatticeOf(step), tissue.fraction);
    PB_RETURN_IF_ERROR(FilterTogether(filter, sets, numbers, taken));
  }
  return taken;
}

/// Where in the image's level things are; full_ is set to the size of level 0.
void ImagePlaces::Lay(const RunConfig& config, const PlannedImage& image) {
  size_ = image.size;
  source_ = SourceOf(config, image);
  stride_ = StepOf(config, image);
  before_centre_ = {BeforeCentre(source_.z, config.patch.z),
                    BeforeCentre(source_.y, config.patch.y),
                    BeforeCentre(source_.x, config.patch.x)};
  if (config.mpp.empty()) return;
  const PlannedView& view = image.views.front();
  const AxisScale y = ScaleOf(view.downsample_y, full_.y, size_.y);
  const AxisScale x = ScaleOf(view.downsample_x, full_.x, size_.x);
  full_ = Flat(y.full, x.full);
  size_ = Flat(y.level, x.level);
}

Status ImagePlaces::AddClasses(const RunConfig& config, const TissueWanted& tissue,
                               const PositionIndex& classes) {
  kind_ = Kind::kCentres;
  const CellSet none(1);
  std::vector<const CellSet*> sets;
  for (const auto& [name, weight] : config.class_weights) {
    const ClassCells* one = classes.Find(name);
    sets.push_back(one != nullptr && weight > 0 ? &one->cells : &none);
    pixels_each_.push_back(std::uint64_t{sets.back()->step()} * sets.back()->step());
  }
  return AddFiltered(tissue, sets);
}

Status ImagePlaces::AddTissue(const RunConfig& config, const TissueWanted& tissue,
                              const PlannedImage& image) {
  Extent cells = CellsOfGrid(config, image);
  if (config.positions == Positions::kRandom) {
    // The lattice is as fine as the mask: places between two of its pixels do not differ.
    kind_ = Kind::kLattice;
    stride_ = {1, std::max<std::int64_t>(1, Scaled(tissue.mask_step, full_.y, size_.y)),
               std::max<std::int64_t>(1, Scaled(tissue.mask_step, full_.x, size_.x))};
    cells = {1, std::max<std::int64_t>(0, image.size.y - source_.y) / stride_.y + 1,
             std::max<std::int64_t>(0, image.size.x - source_.x) / stride_.x + 1};
  }
  CellSet all(1);
  for (std::int64_t y = 0; y < cells.y; ++y) {
    PB_RETURN_IF_ERROR(
        all.Append({0, static_cast<std::uint32_t>(y), 0, static_cast<std::uint32_t>(cells.x)}));
  }
  pixels_each_ = {1};
  return AddFiltered(tissue, {&all});
}

StatusOr<ImagePlaces> ImagePlaces::Of(const RunConfig& config, const PlannedImage& image,
                                      const PlaceIndexes& indexes) {
  return Of(config, image, indexes, true);
}

StatusOr<std::vector<PlaceCount>> ImagePlaces::CountsOf(const RunConfig& config,
                                                        const PlannedImage& image,
                                                        const PlaceIndexes& indexes) {
  PB_ASSIGN_OR_RETURN(const ImagePlaces places, Of(config, image, indexes, false));
  return places.Counts();
}

StatusOr<ImagePlaces> ImagePlaces::Of(const RunConfig& config, const PlannedImage& image,
                                      const PlaceIndexes& indexes, bool is_listed) {
  const PositionIndex *tissue = indexes.tissue, *classes = indexes.classes;
  ImagePlaces places;
  places.is_listed_ = is_listed;
  const Extent full = tissue != nullptr ? tissue->size : classes->size;
  if (classes != nullptr && classes->size != full) {
    return RefusedPlaces("an index of an image of another shape");
  }
  places.full_ = full;
  places.Lay(config, image);
  if (config.foreground) {
    PB_RETURN_IF_ERROR(places.AddForeground(*config.foreground, indexes));
    return places;
  }
  TissueWanted wanted;
  if (config.tissue_fraction) {
    if (image.size.z != 1) {
      return RefusedPlaces("key 'sampling.tissue': volumes have no mask of tissue");
    }
    wanted.fraction = std::llround(*config.tissue_fraction * kFractionUnits);
    PB_ASSIGN_OR_RETURN(const ClassCells* mask, TissueOf(*tissue, config));
    if (mask != nullptr) wanted.mask_step = mask->cells.step();
    wanted.area.emplace(mask != nullptr ? mask->cells : CellSet(wanted.mask_step), full);
  }
  const Status added = config.class_weights.empty() ? places.AddTissue(config, wanted, image)
                                                    : places.AddClasses(config, wanted, *classes);
  if (!added.ok()) return added;
  return places;
}

std::vector<PlaceCount> ImagePlaces::Counts() const {
  std::vector<PlaceCount> counts;
  for (std::size_t i = 0; i < counted_.size(); ++i) {
    counts.push_back({counted_[i], pixels_each_[i]});
  }
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const bool by_component = !components_.empty() && !components_[i].empty();
    counts.push_back({by_component ? components_[i].size() : sets_[i].size(), pixels_each_[i]});
  }
  return counts;
}

Point ImagePlaces::OriginOf(std::size_t set, std::uint64_t n, std::uint64_t bits) const {
  if (!components_.empty() && !components_[set].empty()) {
    const CellSet& one = components_[set][n];
    return Placed(LatticeOf(one.step()).Origin(one.Cell(UniformBelow(bits, one.size()))));
  }
  return Placed(LatticeOf(sets_[set].step()).Origin(sets_[set].Cell(n)));
}

/// The origin of a foreground patch, adjusted by its profile.
Point ImagePlaces::Placed(const Point& origin) const {
  if (!profile_) return origin;
  const bool may_pass_end = profile_ == ForegroundProfile::kNnunet;
  const auto along = [&](std::int64_t at, std::int64_t side, std::int64_t patch) {
    const std::int64_t room = side - patch;
    // nnU-Net centres an image that is smaller than the patch; elsewhere it begins with the patch.
    const std::int64_t first = may_pass_end && room < 0 ? -((1 - room) / 2) : 0;
    const std::int64_t begin = std::max(at, first);
    return may_pass_end ? begin : std::min(begin, std::max<std::int64_t>(0, room));
  };
  return {along(origin.z, size_.z, source_.z), along(origin.y, size_.y, source_.y),
          along(origin.x, size_.x, source_.x)};
}

Status ImagePlaces::AddForeground(const Foreground& foreground, const PlaceIndexes& indexes) {
  constexpr std::string_view kKey = "key 'sampling.foreground.classes': ";
  kind_ = Kind::kCentres;
  profile_ = foreground.profile;
  const auto add = [&](const CellSet& cells) {
    sets_.push_back(cells);
    pixels_each_.push_back(std::uint64_t{cells.step()} * cells.step());
    components_.emplace_back();
  };
  const ClassCells* background = indexes.classes->Find(kBackgroundClass);
  if (foreground.profile == ForegroundProfile::kMonai && background == nullptr) {
    return RefusedPlaces(StrCat("key 'sampling.foreground.profile': monai: the set has no class '",
                                kBackgroundClass, "'"));
  }
  add(foreground.profile == ForegroundProfile::kMonai ? background->cells : CellSet(1));
  std::vector<std::string> names = foreground.classes;
  for (const ClassCells& one : indexes.classes->classes) {
    if (foreground.classes.empty() && one.name != kBackgroundClass) names.push_back(one.name);
  }
  for (const std::string& name : names) {
    const ClassCells* one = indexes.classes->Find(name);
    if (one == nullptr) {
      std::vector<std::string> there;
      for (const ClassCells& other : indexes.classes->classes) there.push_back(other.name);
      return RefusedPlaces(
          StrCat(kKey, "'", name, "': not a class of the set, which has ", StrJoin(there, ", ")));
    }
    if (!foreground.by_component) {
      add(one->cells);
      continue;
    }
    const ClassComponents* parts = indexes.components->Find(name);
    if (parts == nullptr || !parts->is_indexed) {
      return RefusedPlaces(StrCat(kKey, "'", name, "': more than ", kMaxComponents,
                                  " components, or ", kMaxComponentRuns,
                                  " runs of voxels: sample it by voxel"));
    }
    add(CellSet(1));
    components_.back() = parts->components;
    pixels_each_.back() = 1;
  }
  return absl::OkStatus();
}

std::size_t ImagePlaces::MemoryBytes() const {
  std::size_t bytes = sizeof(ImagePlaces);
  for (const CellSet& set : sets_) bytes += sizeof(CellSet) + set.MemoryBytes();
  for (const auto& parts : components_) {
    for (const CellSet& part : parts) bytes += sizeof(CellSet) + part.MemoryBytes();
  }
  return bytes;
}

}  // namespace patchbay::plan
