#include "runtime/model/plan/places.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/core/random.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/image_views.h"
#include "runtime/model/plan/plan.h"

namespace patchbay::plan {
namespace {

constexpr double kFractionUnits = 1e9;  ///< decimal, so that 0.6 of 100 pixels are 60

/// Divides in 64 bits where both numbers fit: the function runs for each of millions of places, and
/// the division of 128 bits is several times slower.
__int128 Quotient(__int128 value, __int128 by) {
  const auto short_value = static_cast<std::int64_t>(value),
             short_by = static_cast<std::int64_t>(by);
  if (short_value == value && short_by == by) return short_value / short_by;
  return value / by;
}

/// `value` pixels of an axis of `from`, in one of `to`.
std::int64_t Scaled(std::int64_t value, std::int64_t from, std::int64_t to) {
  if (from == to) return value;  // level 0: no long division for each of millions of places
  const __int128 product = static_cast<__int128>(value) * to;
  // Towards minus infinity: a patch that reaches out to the left keeps its size.
  const __int128 quotient = product / from;
  return static_cast<std::int64_t>(quotient - (product % from < 0 ? 1 : 0));
}

Status RefusedPlaces(std::string_view cause) {
  return InvalidArgument("places of an image: ", cause);
}

constexpr std::size_t kColumnsLaid = 32;  ///< sums of a band that are made together
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

TissueArea::TissueArea(const CellSet& tissue, const Extent& size)
    : shift_(std::countr_zero(tissue.step())),
      rows_((size.y + tissue.step() - 1) >> shift_),
      columns_((size.x + tissue.step() - 1) >> shift_),
      sums_(static_cast<std::size_t>((rows_ + 1) * (columns_ + 1))) {
  const auto at = [&](std::int64_t y, std::int64_t x) -> std::uint32_t& {
    return sums_[static_cast<std::size_t>(y * (columns_ + 1) + x)];
  };
  auto run = tissue.runs().begin();
  for (std::int64_t y = 0; y < rows_; ++y) {
    std::uint32_t row = 0;
    std::int64_t x = 0;
    const auto fill = [&](std::int64_t end, std::uint32_t each) {
      for (; x < end; ++x) at(y + 1, x + 1) = at(y, x + 1) + (row += each);
    };
    for (; run != tissue.runs().end() && run->y == y; ++run) {
      fill(run->x, 0);
      fill(std::int64_t{run->x} + run->count, 1);
    }
    fill(columns_, 0);
  }
}

TissueArea::Band::Band(const TissueArea& area)
    : area_(area),
      top_(BorderAt(0)),
      bottom_(top_),
      sums_(static_cast<std::size_t>(area.columns_ + 1)),
      laid_(sums_.size() / kColumnsLaid + 1) {}

void TissueArea::Band::Lay(std::int64_t y, std::int64_t height) {
  if (y == y_ && height == height_) return;
  y_ = y;
  height_ = height;
  top_ = BorderAt(y);
  bottom_ = BorderAt(y + height);
  ++rows_laid_;
}

/// A cell that the border cuts counts with its share above the border.
TissueArea::Band::Border TissueArea::Band::BorderAt(std::int64_t y) const {
  const std::int64_t step = std::int64_t{1} << area_.shift_;
  y = std::clamp<std::int64_t>(y, 0, area_.rows_ << area_.shift_);
  const std::int64_t row = y >> area_.shift_, below = std::min(row + 1, area_.rows_);
  const auto at = [&](std::int64_t i) { return area_.sums_.data() + i * (area_.columns_ + 1); };
  return {at(row), at(below), step - (y & (step - 1)), y & (step - 1)};
}

/// Rows of pixels above the bottom less those above the top, in the cells left of a column.
std::int64_t TissueArea::Band::SumAt(std::size_t column) {
  const std::size_t block = column / kColumnsLaid;
  if (laid_[block] != rows_laid_) {
    const std::size_t end = std::min(sums_.size(), (block + 1) * kColumnsLaid);
    for (std::size_t i = block * kColumnsLaid; i < end; ++i) {
      sums_[i] = bottom_.cells[i] * bottom_.of_cells + bottom_.next[i] * bottom_.of_next -
                 top_.cells[i] * top_.of_cells - top_.next[i] * top_.of_next;
    }
    laid_[block] = rows_laid_;
  }
  return sums_[column];
}

std::int64_t TissueArea::Band::UpTo(std::int64_t x) {
  x = std::clamp<std::int64_t>(x, 0, area_.columns_ << area_.shift_);
  const auto column = static_cast<std::size_t>(x >> area_.shift_);
  const std::int64_t step = std::int64_t{1} << area_.shift_, beyond = x & (step - 1);
  const std::int64_t whole = SumAt(column) * (step - beyond);
  return beyond == 0 ? whole : whole + SumAt(column + 1) * beyond;
}

std::uint64_t TissueArea::Band::In(std::int64_t x, std::int64_t width) {
  return static_cast<std::uint64_t>(UpTo(x + width) - UpTo(x));
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

/// The values that decide whether a place is taken.
struct ImagePlaces::Frame {
  std::optional<TissueArea> tissue;
  std::int64_t wanted = 0;  ///< fraction of a patch that is tissue, in kFractionUnits
  Extent size, full, source;

  /// How much more tissue a patch has than it must, less than none where it has too little.
  struct Surplus {
    __int128 area = 0;        ///< pixels of level 0, in kFractionUnits
    std::int64_t height = 0;  ///< height of the patch, in pixels of level 0
    bool Takes() const { return area >= 0; }
  };

  /// `band`: of the tissue; its rows are those of the patch then.
  Surplus SurplusAt(const Point& origin, TissueArea::Band& band) const {
    const std::int64_t y = Scaled(origin.y, size.y, full.y), x = Scaled(origin.x, size.x, full.x);
    const Box box = Box2D(y, x, Scaled(origin.y + source.y, size.y, full.y) - y,
                          Scaled(origin.x + source.x, size.x, full.x) - x);
    band.Lay(box.y, box.height);
    return {static_cast<__int128>(band.In(box.x, box.width)) * Units() -
                static_cast<__int128>(wanted) * box.Pixels(),
            box.height};
  }

  /// Cells of a row after one of this surplus that are taken as it is. A patch that moves by one
  /// pixel gains or loses no more than a column of its height, and its width changes by at most two
  /// by rounding. `step`: from cell to cell, in pixels of the image's level.
  std::uint32_t AlikeAfter(const Surplus& surplus, std::int64_t step) const {
    const std::int64_t pixel = full.x / size.x + 1;  // pixel of the level, in level 0, rounded up
    const __int128 column = std::max<__int128>(1, static_cast<__int128>(surplus.height) * Units());
    const __int128 columns = Quotient(surplus.area < 0 ? -surplus.area : surplus.area, column);
    const __int128 cells = Quotient(columns - 2 * pixel - 3, step * pixel);
    return static_cast<std::uint32_t>(std::clamp<__int128>(cells, 0, kMostAlike));
  }

  static constexpr std::int64_t Units() { return static_cast<std::int64_t>(kFractionUnits); }
  static constexpr std::int64_t kMostAlike = 1 << 20;

  class Tiles;
};

Point ImagePlaces::Origin(Kind kind, const CellSet& cells, const Point& cell) const {
  if (kind != Kind::kCentres) {
    return {cell.z * stride_.z, cell.y * stride_.y, cell.x * stride_.x};
  }
  const Point centre = cells.PixelOf(cell);
  return {Scaled(centre.z, full_.z, size_.z) - before_centre_.z,
          Scaled(centre.y, full_.y, size_.y) - before_centre_.y,
          Scaled(centre.x, full_.x, size_.x) - before_centre_.x};
}

/// Filters one set, by tiles of cells of about half a patch a side: most tiles lie so far
/// from the border of the tissue that all of their cells are taken or left.
class ImagePlaces::Frame::Tiles {
 public:
  Tiles(const ImagePlaces& places, const Frame& frame, Kind kind, const CellSet& cells)
      : places_(places),
        frame_(frame),
        kind_(kind),
        cells_(cells),
        step_(kind == Kind::kCentres ? std::int64_t{cells.step()}
                                     : places.stride_.x * cells.step()),
        shift_(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(
                   std::max<std::int64_t>(1, frame.source.x / (2 * step_))))) -
               1),
        cells_band_(*frame.tissue),
        tiles_band_(*frame.tissue) {}

  /// Appends the cells of `run` that are taken. Runs come in the order of the set.
  template <typename Taken>
  Status Filter(const CellRun& run, Taken& taken) {
    const std::uint32_t end = run.x + run.count;
    std::uint32_t begin = run.x;  // first cell of those that are taken up to x
    const auto append = [&](std::uint32_t x) {
      return x == begin ? absl::OkStatus() : taken.Append({run.z, run.y, begin, x - begin});
    };
    for (std::uint32_t x = run.x; x < end;) {
      const std::uint32_t tile = x >> shift_;
      auto next = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(end, (std::uint64_t{tile} + 1) << shift_));
      State state = StateOf(run.y >> shift_, tile);
      if (state == State::kMixed) {
        const Surplus surplus =
            frame_.SurplusAt(places_.Origin(kind_, cells_, {0, run.y, x}), cells_band_);
        next = std::min(next - x, 1 + frame_.AlikeAfter(surplus, step_)) + x;
        state = surplus.Takes() ? State::kTaken : State::kLeft;
      }
      if (state == State::kLeft) {
        PB_RETURN_IF_ERROR(append(x));
        begin = next;
      }
      x = next;
    }
    return append(end);
  }

 private:
  enum class State : std::uint8_t { kUnknown, kTaken, kLeft, kMixed };

  State StateOf(std::uint32_t y, std::uint32_t x) {
    if (y != row_) states_.clear();
    row_ = y;
    if (x >= states_.size()) states_.resize(x + 1);
    State& state = states_[x];
    if (state == State::kUnknown) state = Look(y, x);
    return state;
  }

  /// Every patch of a tile has at most the tissue of the box around them all, and lacks at most
  /// the box's other pixels.
  State Look(std::uint32_t tile_y, std::uint32_t tile_x) {
    const Point cell{0, std::int64_t{tile_y} << shift_, std::int64_t{tile_x} << shift_};
    const std::int64_t rest = (std::int64_t{1} << shift_) - 1;
    const Point first = places_.Origin(kind_, cells_, cell);
    const Point last = places_.Origin(kind_, cells_, {0, cell.y + rest, cell.x + rest});
    const auto down = [&](std::int64_t y) { return Scaled(y, frame_.size.y, frame_.full.y); };
    const auto along = [&](std::int64_t x) { return Scaled(x, frame_.size.x, frame_.full.x); };
    const std::int64_t y = down(first.y), x = along(first.x);
    const Box around =
        Box2D(y, x, down(last.y + frame_.source.y) - y, along(last.x + frame_.source.x) - x);
    tiles_band_.Lay(around.y, around.height);
    const auto covered = static_cast<__int128>(tiles_band_.In(around.x, around.width));
    const __int128 least = static_cast<__int128>(down(frame_.source.y)) * along(frame_.source.x);
    if (covered * Units() < least * frame_.wanted) return State::kLeft;
    const bool all = (around.Pixels() - covered) * Units() <= least * (Units() - frame_.wanted);
    return all ? State::kTaken : State::kMixed;
  }

  const ImagePlaces& places_;
  const Frame& frame_;
  Kind kind_;
  const CellSet& cells_;
  std::int64_t step_;  ///< from cell to cell of a row, in pixels of the image's level
  int shift_;          ///< a tile has 1 << shift_ cells a side
  TissueArea::Band cells_band_, tiles_band_;
  std::uint32_t row_ = 0;
  std::vector<State> states_;  ///< states of the tiles of row_
};

/// The cells of runs as a CellSet would take them, without the runs.
struct ImagePlaces::Counted {
  std::uint64_t cells = 0;
  std::size_t runs = 0;

  Status Append(const CellRun& run) {
    cells += run.count;
    if (++runs <= CellSet::kMaxRuns) return absl::OkStatus();
    return RefusedPlaces(StrCat("more than ", CellSet::kMaxRuns, " runs of cells"));
  }
};

template <typename Taken>
Status ImagePlaces::Filter(const Frame& frame, Kind kind, const CellSet& cells,
                           Taken& taken) const {
  Frame::Tiles tiles(*this, frame, kind, cells);
  for (const CellRun& run : cells.runs()) PB_RETURN_IF_ERROR(tiles.Filter(run, taken));
  return absl::OkStatus();
}

Status ImagePlaces::AddFiltered(const Frame& frame, Kind kind, const CellSet& cells) {
  if (!is_listed_) {
    Counted taken{.cells = frame.tissue ? 0 : cells.size()};
    if (frame.tissue) PB_RETURN_IF_ERROR(Filter(frame, kind, cells, taken));
    counted_.push_back(taken.cells);
    return absl::OkStatus();
  }
  CellSet taken(cells.step());
  if (frame.tissue) PB_RETURN_IF_ERROR(Filter(frame, kind, cells, taken));
  sets_.push_back(frame.tissue ? std::move(taken) : cells);
  return absl::OkStatus();
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

Status ImagePlaces::AddClasses(const RunConfig& config, const Frame& frame,
                               const PositionIndex& classes) {
  kind_ = Kind::kCentres;
  const CellSet none(1);
  for (const auto& [name, weight] : config.class_weights) {
    const ClassCells* one = classes.Find(name);
    const CellSet& cells = one != nullptr && weight > 0 ? one->cells : none;
    PB_RETURN_IF_ERROR(AddFiltered(frame, kind_, cells));
    pixels_each_.push_back(std::uint64_t{cells.step()} * cells.step());
  }
  return absl::OkStatus();
}

Status ImagePlaces::AddTissue(const RunConfig& config, const Frame& frame,
                              const PlannedImage& image, std::uint32_t mask_step) {
  Extent cells = CellsOfGrid(config, image);
  if (config.positions == Positions::kRandom) {
    // The lattice is as fine as the mask: places between two of its pixels do not differ.
    kind_ = Kind::kLattice;
    stride_ = {1, std::max<std::int64_t>(1, Scaled(mask_step, full_.y, size_.y)),
               std::max<std::int64_t>(1, Scaled(mask_step, full_.x, size_.x))};
    cells = {1, std::max<std::int64_t>(0, image.size.y - source_.y) / stride_.y + 1,
             std::max<std::int64_t>(0, image.size.x - source_.x) / stride_.x + 1};
  }
  CellSet all(1);
  for (std::int64_t y = 0; y < cells.y; ++y) {
    PB_RETURN_IF_ERROR(
        all.Append({0, static_cast<std::uint32_t>(y), 0, static_cast<std::uint32_t>(cells.x)}));
  }
  pixels_each_ = {1};
  return AddFiltered(frame, kind_, all);
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
  Frame frame;
  frame.size = places.size_;
  frame.full = places.full_;
  frame.source = places.source_;
  std::uint32_t mask_step = 1u << 10;
  if (config.tissue_fraction) {
    if (image.size.z != 1) {
      return RefusedPlaces("key 'sampling.tissue': volumes have no mask of tissue");
    }
    frame.wanted = std::llround(*config.tissue_fraction * kFractionUnits);
    PB_ASSIGN_OR_RETURN(const ClassCells* mask, TissueOf(*tissue, config));
    if (mask != nullptr) mask_step = mask->cells.step();
    frame.tissue.emplace(mask != nullptr ? mask->cells : CellSet(mask_step), full);
  }
  const Status added = config.class_weights.empty()
                           ? places.AddTissue(config, frame, image, mask_step)
                           : places.AddClasses(config, frame, *classes);
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
    return Placed(Origin(kind_, one, one.Cell(UniformBelow(bits, one.size()))));
  }
  return Placed(Origin(kind_, sets_[set], sets_[set].Cell(n)));
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
