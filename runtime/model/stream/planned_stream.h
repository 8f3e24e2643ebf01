// The outcome of planning a stream, and its one text: the result of the stream's root task.
// Planners write it; scheduler, client and command line read it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/stream/image_runs.h"
#include "runtime/model/stream/numerics.h"
#include "runtime/model/stream/position.h"
#include "runtime/model/stream/stream_geometry.h"

namespace patchbay {

struct PlannedStream {
  std::string plan;  ///< canonical text; its SHA-256 names the stream's bytes
  /// Where the images lie, for the eyes of workers and submitter: an object as JSON. It may be
  /// large, and most of those who pass it on do not read it.
  std::string manifest = "{}";
  StreamGeometry geometry;
  Numerics numerics = Numerics::kCpu;
  /// Images that were left out: results::SkippedImages.
  Json skipped = Json::object();
  /// Position where every rank of the job begins; unset = anywhere.
  std::optional<Position> start;
  /// Versions of the code that made the plan; workers with others make none of it.
  std::string byte_versions;
  ImageRuns images;  ///< empty when patches of one image do not follow one another
};

/// {"plan", "manifest", "geometry": {"patches_per_epoch", "global_batch", "tail", "world_size",
/// "shard_patches", "numerics"[, "start", "versions", "image_runs", "units"]}[, "skipped"]}
std::string EncodePlannedStream(const PlannedStream& stream);

/// InvalidArgument naming the part that is missing, of another type, outside its limits, or at odds
/// with another.
StatusOr<PlannedStream> DecodePlannedStream(std::string_view text);

}  // namespace patchbay
