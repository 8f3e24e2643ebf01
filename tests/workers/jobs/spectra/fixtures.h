// Images for the spectra job's tests, and the expected results.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spectral/spectral_frames.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "tests/workers/jobs/job_runner.h"
#include "tests/workers/sources/pattern_image.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

inline Json SpectraManifestFor(const std::vector<std::string>& sources, const std::string& out) {
  return {{"sources", sources}, {"out", out}, {"pseudonym_key", "00ff"}};
}

/// The sums of all frames of an image in one Add; every way of cutting it must give the same.
inline std::vector<ops::SpectralSums> WholeImageSums(const std::string& path,
                                                     const plan::SpectralOptions& options,
                                                     const std::vector<std::uint8_t>& wanted = {}) {
  const auto image = *OpenImage(Folders::OfThisUser(), path);
  const LevelLayout level = image->layout().levels[0];
  const std::int64_t channels = image->layout().channels, pixels = level.size.y * level.size.x;
  std::vector<std::uint8_t> raw(static_cast<std::size_t>(pixels * channels));
  EncodedPatch patch;
  EXPECT_TRUE(image->Fetch(0, Box2D(0, 0, level.size.y, level.size.x), patch).ok());
  EXPECT_TRUE(image
                  ->Decode(patch,
                           ContiguousView<3>(reinterpret_cast<std::byte*>(raw.data()),
                                             DType::kUint8, {level.size.y, level.size.x, channels}),
                           channels == 3 ? 255 : 0, *image->MakeScratch())
                  .ok());
  std::vector<std::vector<std::uint8_t>> planes(
      static_cast<std::size_t>(plan::SpectralChannels(options)),
      std::vector<std::uint8_t>(static_cast<std::size_t>(pixels)));
  if (channels == 1) {
    planes[0] = raw;
  } else if (planes.size() == 1) {
    ops::GreyOfRgb(raw.data(), pixels, planes[0].data());
  } else {
    ops::SplitRgb(raw.data(), pixels, planes[0].data(), planes[1].data(), planes[2].data());
  }
  std::vector<ops::SpectralSums> sums;
  for (const auto& plane : planes) {
    ops::SpectralPlane view{plane.data(), level.size.x, 0,           0, level.size.y,
                            level.size.x, level.size.y, level.size.x};
    EXPECT_TRUE((*ops::SpectralFrames::Create(options))
                    ->Add(view,
                          {0, plan::FramesAlong(level.size.y, options), 0,
                           plan::FramesAlong(level.size.x, options)},
                          wanted, sums.emplace_back(options))
                    .ok());
  }
  return sums;
}

/// spectra.json of a folder; null when there is none.
inline Json DocumentIn(const std::string& out) {
  const auto text = ReadFile(Folders::OfThisUser(), out + "/spectra.json", std::size_t{1} << 28);
  return text.ok() ? *ParseJson(*text, "spectra.json", std::size_t{1} << 28) : Json();
}

/// A whole job; its failures are the caller's.
inline JobRunner RunSpectraJob(const Json& manifest, const Json& settings, unsigned seed = 1) {
  JobRunner job(manifest, seed);
  job.repeats_exactly = "spectra.strip";
  job.Submit("spectra.plan", settings);
  job.Run();
  return job;
}

}  // namespace patchbay::workers
