// The outcome of opening one image for a plan, as it travels from the task that opened it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/image_volumes.h"
#include "runtime/model/plan/plan.h"
#include "runtime/model/results/image_facts.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The order of a table's places, by number of the plan's images, from `by_row`, which counts rows:
/// `rows` are the images' rows, rising; places of other rows are left out.
std::vector<plan::ListedRun> ListedSequenceOf(std::span<const plan::ListedRun> by_row,
                                              std::span<const std::uint64_t> rows);

/// Rounded to the nearest pixel of the planned image's level. InvalidArgument naming the first
/// place that is not in the image.
StatusOr<std::vector<plan::PlanePoint>> PlacesAtLevel(std::vector<plan::PlanePoint> places,
                                                      const ImageLayout& layout,
                                                      const plan::PlannedImage& image);

/// An image, or why it is none.
struct ImageRow {
  plan::PlannedImage image;
  std::string stamp;  ///< StampOf before it was opened
  std::string path;   ///< not empty: the image is this store, not the listed path
  /// um/px of the array `image`: of the level, or by patch.mpp. Absent: not known.
  std::optional<double> mpp;
  results::ImageFacts facts;
  bool mpp_assumed = false;  ///< the store has it from `ingest --assume-mpp`, not from its slide
  /// For volumes that state them: mm from voxel to voxel of the level, and the sides their axes run
  /// to.
  std::optional<plan::PerAxis> spacing;
  std::string orientation;
  std::optional<Extent> tile = std::nullopt;  ///< the size of each, of a store of tiles
  std::string misfit;      ///< under stain_normalize: why its colours are not H&E; empty: they are
  bool of_tissue = false;  ///< its stain fit is that of its label set's tissue
  std::string fault;       ///< not empty: why it is left out; the other members are then unset

  static constexpr auto Fields() {
    return AsObject(Field("image", &ImageRow::image), Field("stamp", &ImageRow::stamp),
                    Field("path", &ImageRow::path), Field("mpp", &ImageRow::mpp),
                    Field("facts", &ImageRow::facts), Field("mpp_assumed", &ImageRow::mpp_assumed),
                    Field("spacing", &ImageRow::spacing),
                    Field("orientation", &ImageRow::orientation), Field("tile", &ImageRow::tile),
                    Field("misfit", &ImageRow::misfit), Field("of_tissue", &ImageRow::of_tissue),
                    Field("fault", &ImageRow::fault));
  }
};

}  // namespace patchbay::workers
