// Labels of an image to be read: the current revision of a set, or a class map of results.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/box.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/os/folders.h"
#include "workers/jobs/labels/image.h"
#include "workers/jobs/labels/volume_grid.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// The work that errors of an export name.
inline constexpr char kExportLabels[] = "export labels";
/// Slices of a volume that are read at a time.
inline constexpr std::int64_t kSlicesAtOnce = 32;

/// The pixels of a class map in its image; both begin at the same corner.
struct MapGrid {
  Extent size;                               ///< its finest level's
  std::array<double, 3> per_pixel{1, 1, 1};  ///< its pixels in one of the image's level 0: z, y, x
  int first_class = 0;  ///< value of the first channel of `probabilities`; below it there are none
  std::string probabilities;  ///< path of the map that the classes were decided from
};

struct OpenedLabels {
  LabelledImage image;
  zarr::OpenedLabelSet set;
  plan::ClassTable classes;
  std::optional<MapGrid> map;  ///< a class map's
};

/// Labels of the manifest's one store: the set (`images`), or the class map of its row of labels.
StatusOr<OpenedLabels> OpenLabels(TaskContext& context, const std::string& set);

/// The grid of a volume's labels, and their values there, x fastest.
VoxelGrid GridOf(const OpenedLabels& labels);
StatusOr<std::vector<std::uint8_t>> ReadVoxels(TaskContext& context, const OpenedLabels& labels);

/// Along one axis: the pixel of another image over the same place that a pixel's centre lies in.
struct NearestPixel {
  double per_pixel = 1;   ///< the other's pixels in one of these
  std::int64_t side = 1;  ///< the other's

  std::int64_t operator()(std::int64_t at) const;
};

/// The level of a label image for one of its image's levels, and the pixels there.
struct LevelFit {
  int level = 0;
  NearestPixel y, x;

  /// The pixels that those of `box` are taken from.
  Box Of(const Box& box) const;
};
/// A class map's is the coarsest whose pixels are no larger than the image's.
LevelFit FitOf(const OpenedLabels& labels, const ImageLayout& layout, int level);

/// Rows of one level, one byte per pixel. Belongs to one thread.
class LabelRowReader {
 public:
  /// DataLoss for a label image that is not of its store's image.
  static StatusOr<LabelRowReader> Open(const Folders& allowed, const OpenedLabels& labels,
                                       int level, AfterPiece after_piece);
  /// The rows from `y` on; valid until the next call.
  StatusOr<const std::uint8_t*> Read(std::int64_t y, std::int64_t height);

 private:
  std::unique_ptr<ImageSource> source_;
  std::unique_ptr<DecodeScratch> scratch_;
  EncodedPatch fetched_;
  LevelFit fit_;
  std::int64_t width_ = 0;
  std::vector<std::int64_t> columns_;  ///< by column of the level; empty where they are the same
  std::vector<std::uint8_t> read_, rows_;
};

}  // namespace patchbay::workers
