// Settings of a job of `patchbay spectra`, with nothing left to a profile.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/fields.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/model/ops/spectral_options.h"
#include "runtime/model/results/spectra_document.h"

namespace patchbay::workers {

struct SpectraSettings : plan::SpectralOptions {
  /// Rows of pixels in one task of a slide; larger means fewer, longer tasks. Does not affect the
  /// results.
  std::int64_t strip = 1024;
  bool tissue_only = false;      ///< only frames that lie on tissue
  bool skip_damaged = false;     ///< leave out frames on a damaged tile instead of their slide
  std::string numerics = "cpu";  ///< or "cuda": whose bits

  static constexpr auto Fields() {
    using T = SpectraSettings;
    return Extending<plan::SpectralOptions>(
        AsFullObject(Field("strip", &T::strip), Field("tissue_only", &T::tissue_only),
                     Field("skip_damaged", &T::skip_damaged), Field("numerics", &T::numerics)));
  }

  /// "default" or "nedc" when every choice is that profile's, else "custom".
  std::string Profile() const;
  /// `definition` of spectra.json: all settings that the numbers depend on.
  results::SpectraDefinition Definition() const;
};

/// Reads a SpectraRequest, or the JSON of settings. InvalidArgument names the key and its range;
/// unknown keys are refused.
StatusOr<SpectraSettings> ParseSpectraSettings(const Json& payload);

}  // namespace patchbay::workers
