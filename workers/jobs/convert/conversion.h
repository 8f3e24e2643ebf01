// One store as the job converts it.
//
// A result is made in parts, boxes of a level, by as many tasks as there are workers; one task puts
// them together. A part leaves files of the result, or a record of its own, or both.
//
//   OUT/.patchbay-convert/<job key>/staging/<slide>-<store>/made       the result
//   OUT/.patchbay-convert/<job key>/staging/<slide>-<store>/parts/<i>  the record of a finished
//   part
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/format/zarr/opened_store.h"
#include "runtime/model/jobs/convert_options.h"
#include "workers/jobs/staged/lease_folder.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

struct Conversion {
  ConvertOptions options;
  std::string path;  ///< the store's, canonical
  zarr::OpenedStore store;
  Json attributes;  ///< its own, attributes.patchbay
  /// Its layout: spacing and level ratios as its metadata has them.
  ImageLayout layout;
  std::string staging;  ///< the folder of unfinished work

  std::string Made() const { return StrCat(staging, "/made"); }
  std::string Record(const zarr::ShardPlace& part) const {
    return StrCat(staging, "/parts/", part.level, ".", part.channel, ".", part.at.ToString("."));
  }
};

/// A kind of result; a constant.
struct ConversionTarget {
  /// Unimplemented, with the reason, for stores that it is not made of.
  Status (*check)(const Conversion& from);
  /// Pixels of a part along each axis; null: there are no parts.
  Extent (*part)(const Conversion& from);
  /// Makes a part: its files below Made(), by way of `lease`, durably; returns its record.
  StatusOr<std::string> (*make)(TaskContext& context, const Conversion& from,
                                const zarr::ShardPlace& part, const LeaseFolder& lease);
  /// Completes Made() once all parts are there. DataLoss when its pixels are not the store's.
  Status (*finish)(TaskContext& context, const Conversion& from);
};

extern const ConversionTarget kRecodedStore, kCopiedStore, kPlanarStore, kSlideFile;

inline const ConversionTarget& TargetOf(const ConvertOptions& options) {
  if (options.to == "keep") return kCopiedStore;
  if (options.to == "ngff-0.4") return kPlanarStore;
  return options.MakesStore() ? kRecodedStore : kSlideFile;
}

/// The parts of the result, level by level.
std::vector<zarr::ShardPlace> PartsOf(const Conversion& from);
/// Pixels of a part, inside its level.
Box BoxOf(const Conversion& from, const zarr::ShardPlace& part);
StatusOr<std::string> ReadRecord(TaskContext& context, const Conversion& from,
                                 const zarr::ShardPlace& part);

/// "--to svs: <cause>", Unimplemented.
Status CannotConvert(const Conversion& from, std::string_view cause);

/// attributes.patchbay.codec_plan of a store that is made.
Json CodecPlanOf(const Conversion& from);
/// attributes.patchbay of a planar store: by it a finished one is known.
Json PlanarMarkOf(const Conversion& from);
/// The first description of a file; it names the store's digest.
std::string DescriptionOf(const Conversion& from);

}  // namespace patchbay::workers
