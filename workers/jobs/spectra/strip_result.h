// The result of a strip task, small enough that all results of a slide fit into one message.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ops/spectral/spectral_sums.h"
#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// A native tile of level 0 that does not decode.
struct DamagedTile {
  std::int64_t row = 0, column = 0;  ///< in the tile grid
  std::string cause;

  static constexpr auto Fields() {
    return AsObject(Field("row", &DamagedTile::row).Required(),
                    Field("column", &DamagedTile::column).Required(),
                    Field("cause", &DamagedTile::cause).Required());
  }
};

/// A strip but for its sums.
struct StripRecord {
  /// The first one that a wanted frame depends on, row by row; then nothing else is set. Never with
  /// skip_damaged.
  std::optional<DamagedTile> damaged;
  std::uint64_t frames_skipped = 0;       ///< on a damaged tile
  std::uint64_t frames_off_tissue = 0;    ///< not wanted
  std::vector<std::string> coefficients;  ///< hashes of arrays, one a channel; empty without them
  Json encoded_sums;                      ///< SumsToJson

  static constexpr auto Fields() {
    return AsObject(Field("damaged", &StripRecord::damaged),
                    Field("frames_skipped", &StripRecord::frames_skipped),
                    Field("frames_off_tissue", &StripRecord::frames_off_tissue),
                    Field("coefficients", &StripRecord::coefficients),
                    Field("sums", &StripRecord::encoded_sums));
  }
};

struct StripResult : StripRecord {
  std::vector<ops::SpectralSums> sums;  ///< one a channel
};

/// Fills encoded_sums.
Json ToJson(StripResult& result);
/// InvalidArgument or DataLoss unless ToJson wrote it under the same options.
StatusOr<StripResult> StripResultFromJson(const Json& json, const plan::SpectralOptions& options);

}  // namespace patchbay::workers
