// The places of one image that sampling by tissue or by class may take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/run_config.h"
#include "runtime/model/positions/component_index.h"
#include "runtime/model/positions/patch_lattice.h"
#include "runtime/model/positions/position_index.h"

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
  struct TissueWanted;

  static StatusOr<ImagePlaces> Of(const RunConfig& config, const PlannedImage& image,
                                  const PlaceIndexes& indexes, bool is_listed);
  Status AddClasses(const RunConfig& config, const TissueWanted& tissue,
                    const PositionIndex& classes);
  Status AddTissue(const RunConfig& config, const TissueWanted& tissue, const PlannedImage& image);
  Status AddForeground(const Foreground& foreground, const PlaceIndexes& indexes);
  Point Placed(const Point& origin) const;
  Status AddFiltered(const TissueWanted& tissue, const std::vector<const CellSet*>& sets);
  template <typename Taken>
  StatusOr<std::vector<Taken>> Filtered(const TissueWanted& tissue,
                                        const std::vector<const CellSet*>& sets) const;
  PatchLattice LatticeOf(std::uint32_t step) const;
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
