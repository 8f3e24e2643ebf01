// The places of one image that sampling by tissue or by class may take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/component_index.h"
#include "runtime/model/plan/position_index.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

/// The number of places of a set, and the pixels that each represents.
struct PlaceCount {
  std::uint64_t places = 0;
  std::uint64_t pixels_each = 1;

  std::uint64_t Pixels() const { return places * pixels_each; }
  bool operator==(const PlaceCount&) const = default;
};

/// Whether a config's places come from indexes of the images.
bool NeedsPlaces(const RunConfig& config);

/// The pixels of a plane that are tissue, from a mask's cells: exact for boxes of any size.
class TissueArea {
 public:
  TissueArea(const CellSet& tissue, const Extent& size);

  /// The tissue in some rows: a few instructions a box, fewer where the one before was near.
  class Band {
   public:
    /// Has no rows yet. `area` outlives it.
    explicit Band(const TissueArea& area);
    /// Takes rows [y, y + height) of level 0; at once where they are those of the last call. They
    /// may reach past the image, where there is no tissue; so may columns.
    void Lay(std::int64_t y, std::int64_t height);
    /// Pixels of tissue in columns [x, x + width) of the rows.
    std::uint64_t In(std::int64_t x, std::int64_t width);

   private:
    /// A row of pixels that ends or begins the band: what its row of cells and the next add.
    struct Border {
      const std::uint32_t *cells, *next;
      std::int64_t of_cells, of_next;
    };
    Border BorderAt(std::int64_t y) const;
    std::int64_t SumAt(std::size_t column);
    std::int64_t UpTo(std::int64_t x);

    const TissueArea& area_;
    std::int64_t y_ = 0, height_ = 0;
    Border top_, bottom_;
    std::vector<std::int64_t> sums_;   ///< pixels by row, in the cells to the left of each column
    std::vector<std::uint64_t> laid_;  ///< the rows that each block of sums_ is of
    std::uint64_t rows_laid_ = 1;
  };

 private:
  int shift_;  ///< the mask's step is 1 << shift_
  std::int64_t rows_, columns_;
  std::vector<std::uint32_t> sums_;  ///< cells above and left, (rows + 1) x (columns + 1)
};

struct PlannedImage;

/// The indexes that places are made of; null where the config does not ask for them.
struct PlaceIndexes {
  const PositionIndex* tissue = nullptr;
  const PositionIndex* classes = nullptr;      ///< under class_weights and foreground
  const ComponentIndex* components = nullptr;  ///< under foreground.by: component
};

/// The set that is not a class under sampling.foreground: patches anywhere.
inline constexpr std::size_t kAnywhere = 0;

/// Sets of places: one, or one for each class of class_weights in their order; under foreground
/// kAnywhere, then one for each of its classes. Immutable.
class ImagePlaces {
 public:
  /// Places in the level of the image's `image` array (its first view). InvalidArgument for volumes
  /// where tissue is asked for, for an index of an image of another shape, and for a class of
  /// foreground that the labels do not have or whose components are not indexed.
  static StatusOr<ImagePlaces> Of(const RunConfig& config, const PlannedImage& image,
                                  const PlaceIndexes& indexes);
  /// Counts() of these places, which are not listed: all that a plan holds of them.
  static StatusOr<std::vector<PlaceCount>> CountsOf(const RunConfig& config,
                                                    const PlannedImage& image,
                                                    const PlaceIndexes& indexes);

  std::vector<PlaceCount> Counts() const;
  /// Where the patch at place `n` of a set begins, in pixels of the level. A component is one
  /// place; `bits` choose the voxel in it.
  Point OriginOf(std::size_t set, std::uint64_t n, std::uint64_t bits = 0) const;
  std::size_t MemoryBytes() const;

 private:
  enum class Kind { kGrid, kLattice, kCentres };
  struct Frame;
  struct Counted;

  static StatusOr<ImagePlaces> Of(const RunConfig& config, const PlannedImage& image,
                                  const PlaceIndexes& indexes, bool is_listed);
  Status AddClasses(const RunConfig& config, const Frame& frame, const PositionIndex& classes);
  Status AddTissue(const RunConfig& config, const Frame& frame, const PlannedImage& image,
                   std::uint32_t mask_step);
  Status AddForeground(const Foreground& foreground, const PlaceIndexes& indexes);
  Point Placed(const Point& origin) const;
  Status AddFiltered(const Frame& frame, Kind kind, const CellSet& cells);
  template <typename Taken>
  Status Filter(const Frame& frame, Kind kind, const CellSet& cells, Taken& taken) const;
  Point Origin(Kind kind, const CellSet& cells, const Point& cell) const;
  void Lay(const RunConfig& config, const PlannedImage& image);

  Extent size_, full_;    ///< the same length of each axis, in pixels of the level and of level 0
  Extent source_;         ///< pixels of the level that become one patch
  Extent before_centre_;  ///< pixels before the one under the patch's centre pixel
  Extent stride_;         ///< stride of grid or lattice
  Kind kind_ = Kind::kGrid;
  std::vector<CellSet> sets_;
  std::vector<std::vector<CellSet>> components_;  ///< each set's, under foreground.by: component
  std::optional<ForegroundProfile> profile_;      ///< where patches of foreground may lie
  std::vector<std::uint64_t> pixels_each_;
  bool is_listed_ = true;
  std::vector<std::uint64_t> counted_;  ///< cells of each set, where the sets are not listed
};

}  // namespace patchbay::plan
