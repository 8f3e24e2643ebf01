// The pieces of a strip: read ahead by a thread, decoded and turned into planes.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "workers/bounded_queue.h"
#include "workers/jobs/spectra_grid.h"
#include "workers/jobs/spectra_planes.h"
#include "workers/jobs/spectra_strip_result.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

/// A box of whole tiles.
struct SpectraUnit {
  Box box;
  bool wanted = true;  ///< false: no frame needs it, so it is neither read nor decoded
  EncodedPatch encoded;
  Status fetched;  ///< DataLoss: some of its tiles cannot be read
};

/// Reads units in order on a thread of its own, a few ahead of who takes them.
class UnitsAhead {
 public:
  /// `source` outlives this.
  UnitsAhead(const ImageSource& source, std::vector<SpectraUnit> units);
  /// Waits for the read that is going on.
  ~UnitsAhead();

  /// The next one; nullptr after the last.
  std::unique_ptr<SpectraUnit> Next();
  /// Its memory serves again.
  void GiveBack(std::unique_ptr<SpectraUnit> unit);

 private:
  void Loop();

  const ImageSource& source_;
  std::vector<SpectraUnit> units_;
  BoundedQueue<std::unique_ptr<SpectraUnit>> ready_, spare_;
  std::thread thread_;
};

/// Turns units into planes: grey or the three channels. One owner, one thread.
class UnitDecoder {
 public:
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

}  // namespace patchbay::workers
