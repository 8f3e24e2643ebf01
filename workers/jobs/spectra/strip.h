// The statistics of a range of an image's frames.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ops/spectral/spectral_frames.h"
#include "ops/spectral/spectral_sums.h"
#include "runtime/core/fields.h"
#include "runtime/core/outcome.h"
#include "runtime/format/json/json.h"
#include "workers/jobs/spectra/grid.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/jobs/task/task.h"
#include "workers/sources/image_source.h"  // wide: pixels, frames, settings and the task meet here

namespace patchbay::workers {

/// A native tile of level 0 that does not decode.
struct DamagedTile {
  std::int64_t row = 0, column = 0;  ///< in the tile grid
  Outcome why;

  static constexpr auto Fields() {
    using T = DamagedTile;
    return AsFullObject(Field("row", &T::row), Field("column", &T::column), Field("why", &T::why));
  }
};

/// A strip but for its sums.
struct StripRecord {
  /// The first one that a wanted frame depends on, row by row; then nothing else is set. Never with
  /// skip_damaged.
  std::optional<DamagedTile> damaged;
  std::uint64_t frames_skipped = 0;       ///< on a damaged tile
  std::uint64_t frames_off_tissue = 0;    ///< not wanted
  std::vector<std::string> coefficients;  ///< hashes of arrays, one per channel; empty without them
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
  std::vector<ops::SpectralSums> sums;  ///< one per channel
};

/// Fills encoded_sums.
Json ToJson(StripResult& result);
/// InvalidArgument or DataLoss unless ToJson wrote it under the same options.
StatusOr<StripResult> StripResultFromJson(const Json& json, const plan::SpectralOptions& options);

/// The rows of pixels that a strip holds on to: one plane a channel, moved down band by band. One
/// owner, one thread.
class SpectraPlanes {
 public:
  explicit SpectraPlanes(const SpectraGrid& grid);

  /// From now on the pixels of `box` are held, whatever they are.
  void Hold(const Box& box);
  /// Makes the planes hold rows [top, bottom); rows that were held before keep their pixels.
  void MoveTo(std::int64_t top, std::int64_t bottom);

  std::int64_t row_bytes() const { return width_; }
  /// Where pixel (y, x) of a channel lies; y and x are held.
  std::uint8_t* At(int channel, std::int64_t y, std::int64_t x);
  /// Everything that is held; valid until the next Hold or MoveTo.
  ops::SpectralPlane View(int channel);
  /// Copies all of `from`, whose area must lie within that of these planes.
  void Copy(SpectraPlanes& from);

 private:
  const SpectraGrid grid_;
  std::int64_t left_ = 0, width_ = 0;
  std::int64_t top_ = 0, bottom_ = 0;
  std::vector<std::vector<std::uint8_t>> planes_;  ///< by channel, rows without gaps
};

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
  int threads = 1;          ///< readers; larger hides slower disks
  bool is_decoded = false;  ///< they decode too
};

/// Returns units in order, while its own threads work on the next ones.
class UnitsAhead {
 public:
  /// `source` outlives this.
  UnitsAhead(const ImageSource& source, const SpectraGrid& grid, std::vector<SpectraUnit> units,
             const UnitsAheadOptions& options);
  /// Waits for running work.
  ~UnitsAhead();

  /// The next one; nullptr after the last.
  std::unique_ptr<SpectraUnit> Next();
  /// Takes back a unit, whose memory is used again.
  void GiveBack(std::unique_ptr<SpectraUnit> unit);

 private:
  void Loop();
  /// The number of a unit that no thread works on, once it is near enough; nullopt at the end.
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

/// An image and the frames of it to measure.
struct StripRequest {
  const ImageSource& image;
  const SpectraSettings& settings;
  ops::FrameRange frames;
  /// A byte per frame of `frames`, row-major: 0 is left out (off tissue). Empty: all.
  std::vector<std::uint8_t> wanted;
};

/// Measures the frames, and counts the task's progress. The result depends only on the frames:
/// which frame is left out, and which damaged tile is named, does not depend on the cut into
/// strips. `result` has no `coefficients` yet; they are in its sums.
StatusOr<StripResult> MeasureStrip(TaskContext& context, const StripRequest& request);

}  // namespace patchbay::workers
