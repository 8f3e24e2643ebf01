// The pieces of a strip: read ahead by threads, decoded and turned into planes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/planes.h"
#include "workers/jobs/spectra/strip_result.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// A box of whole tiles on its way.
struct SpectraUnit {
  Box box;
  bool wanted = true;  ///< false: no frame needs it, so it is neither read nor decoded
  EncodedPatch encoded;
  Status fetched;  ///< DataLoss: some of its tiles cannot be read

  // When it was decoded ahead.
  std::optional<SpectraPlanes> planes;
  std::vector<DamagedTile> damaged;
  Status decoded;
};

/// Turns units into planes: grey or the three channels. One owner, one thread.
class UnitDecoder {
 public:
  /// `source` outlives this.
  UnitDecoder(const ImageSource& source, const SpectraGrid& grid);

  /// Writes the unit's pixels where they belong in `planes`. Tiles that cannot be read or decoded
  /// are added to `damaged` and become 0. Any other error of the source is returned.
  Status Decode(const SpectraUnit& unit, SpectraPlanes& planes, std::vector<DamagedTile>& damaged);

 private:
  Status DecodeBox(const EncodedPatch& encoded, SpectraPlanes& planes);
  Status DecodeTileByTile(const Box& box, SpectraPlanes& planes, std::vector<DamagedTile>& damaged);

  const ImageSource& source_;
  const SpectraGrid grid_;
  std::unique_ptr<DecodeScratch> scratch_;
  std::unique_ptr<std::uint8_t[]> rgb_;
  std::size_t rgb_bytes_ = 0;
};

struct UnitsAheadOptions {
  int threads = 1;          ///< that read; larger hides slower disks
  bool is_decoded = false;  ///< they decode too
};

/// Hands out units in order while threads of its own work on the next ones.
class UnitsAhead {
 public:
  /// `source` outlives this.
  UnitsAhead(const ImageSource& source, const SpectraGrid& grid, std::vector<SpectraUnit> units,
             const UnitsAheadOptions& options);
  /// Waits for what is going on.
  ~UnitsAhead();

  /// The next one; nullptr after the last.
  std::unique_ptr<SpectraUnit> Next();
  /// Its memory serves again.
  void GiveBack(std::unique_ptr<SpectraUnit> unit);

 private:
  void Loop();
  /// The number of a unit nobody works on, once it is near enough; none at the end.
  std::optional<std::size_t> Claim(std::unique_ptr<SpectraUnit>& unit);
  void Deliver(std::size_t number, std::unique_ptr<SpectraUnit> unit);

  const ImageSource& source_;
  const SpectraGrid grid_;
  const UnitsAheadOptions options_;
  const std::size_t most_ahead_;

  std::mutex mu_;
  std::condition_variable can_claim_, is_ready_;
  std::vector<SpectraUnit> units_;                   // guarded by mu_: box and wanted of each
  std::size_t claimed_ = 0, taken_ = 0;              // guarded by mu_
  bool closed_ = false;                              // guarded by mu_
  std::vector<std::unique_ptr<SpectraUnit>> ready_;  // guarded by mu_: by number, while ready
  std::vector<std::unique_ptr<SpectraUnit>> spare_;  // guarded by mu_
  std::vector<std::thread> threads_;
};

}  // namespace patchbay::workers
