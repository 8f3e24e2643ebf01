// A realistic slide made from nothing: for the quickstart, for tests and for benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::workers {

struct SynthSlideOptions {
  std::int64_t width = 8192, height = 8192;  ///< pixels of level 0, 256 .. 500000
  std::uint64_t seed = 1;                    ///< same seed, same bytes, on every machine
  int quality = 70;                          ///< JPEG quality, 1 .. 100; larger means larger files
  int threads = 1;                           ///< tiles made at once; the bytes do not depend on it
};

/// {"width": w, "height": h, "seed": s, "quality": q, "threads": n}; absent keys keep their
/// defaults, unknown ones are InvalidArgument.
StatusOr<SynthSlideOptions> SynthSlideOptionsFromJson(const Json& json);
Json ToJson(const SynthSlideOptions& options);

/// Called with the share of the work done, 0 .. 1, from the calling thread. Returning false
/// cancels.
using SynthProgress = std::function<bool(double)>;

/// Writes an H&E-like slide as an Aperio SVS: JPEG tiles of 256 x 256 as abbreviated streams,
/// levels at 1, 1/4 and 1/16, a striped thumbnail, MPP and AppMag in the description; BigTIFF when
/// it may pass 4 GiB. Memory is a few rows of tiles. The file appears under its name only when
/// complete and durable; on failure or cancel nothing is left.
Status SynthSlide(const Folders& allowed, const std::string& path, const SynthSlideOptions& options,
                  const SynthProgress& progress = nullptr);

}  // namespace patchbay::workers
