// Images for the spectra job's tests, and the expected results.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ops/spectral/spectral_frames.h"
#include "runtime/format/csv/csv.h"
#include "runtime/os/file.h"
#include "runtime/os/folders.h"
#include "tests/workers/jobs/job_runner.h"
#include "tests/workers/sources/crafted_tiff.h"
#include "tests/workers/sources/slide_fixtures.h"
#include "workers/jobs/spectra/settings.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {

inline Json SpectraManifestFor(const std::vector<std::string>& sources, const std::string& out) {
  return {{"sources", sources}, {"out", out}, {"pseudonym_key", "00ff"}};
}

/// A value for every place and channel: structure of several scales, no two frames alike.
inline std::uint8_t PatternAt(std::int64_t y, std::int64_t x, int channel, std::uint32_t seed) {
  std::uint32_t noise = static_cast<std::uint32_t>(y) * 73856093u ^
                        static_cast<std::uint32_t>(x) * 19349663u ^
                        (seed + static_cast<std::uint32_t>(channel)) * 83492791u;
  noise = (noise ^ noise >> 13) * 0x85ebca6bu;
  const double wave = 60 * std::sin(0.05 * static_cast<double>(x + 3 * channel)) +
                      40 * std::cos(0.11 * static_cast<double>(y) + seed);
  return static_cast<std::uint8_t>(std::clamp(128 + wave + (noise >> 27), 0.0, 255.0));
}

/// An uncompressed tiled image; pixels by `value` (y, x, channel).
inline CraftedImage PatternImage(
    std::uint32_t width, std::uint32_t height, std::uint32_t tile, std::uint16_t samples,
    const std::function<std::uint8_t(std::int64_t, std::int64_t, int)>& value) {
  CraftedImage image;
  image.width = width;
  image.height = height;
  image.tile = tile;
  image.samples = samples;
  image.photometric = samples == 1 ? 1 : 2;
  const std::uint32_t columns = (width + tile - 1) / tile;
  for (std::size_t n = 0; n < PieceCount(image); ++n) {
    std::string piece;
    for (std::uint32_t y = 0; y < tile; ++y) {
      for (std::uint32_t x = 0; x < tile; ++x) {
        for (int c = 0; c < samples; ++c) {
          piece.push_back(
              static_cast<char>(value(static_cast<std::int64_t>(n / columns * tile + y),
                                      static_cast<std::int64_t>(n % columns * tile + x), c)));
        }
      }
    }
    image.pieces.push_back(std::move(piece));
  }
  return image;
}

inline CraftedImage PatternImage(std::uint32_t width, std::uint32_t height,
                                 std::uint32_t tile = 128, std::uint16_t samples = 3,
                                 std::uint32_t seed = 1) {
  return PatternImage(width, height, tile, samples, [seed](std::int64_t y, std::int64_t x, int c) {
    return PatternAt(y, x, c, seed);
  });
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
