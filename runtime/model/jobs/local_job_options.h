// Options of the jobs that a command runs in a worker process of its own, without a cluster: `synth
// slide`, `synth volume`, `synth ct`, `preview` and `scan`. Their flags, and their tasks' payloads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/extent.h"
#include "runtime/model/jobs/option.h"

namespace patchbay {

struct SynthSlideOptions {
  std::int64_t width = 8192, height = 8192;  ///< pixels of level 0
  std::int64_t seed = 1;                     ///< same seed, same bytes, on every machine
  std::int64_t quality = 70;                 ///< quality of JPEG; larger means larger files
  int threads = 1;  ///< tiles made at once; the bytes do not depend on it. No part of a payload

  /// The table of options, bound to this value.
  std::vector<Option> Options();
};

/// Most voxels of a synthetic volume: an eighth of them is held in memory.
inline constexpr std::int64_t kMaxVolumeVoxels = std::int64_t{1} << 31;

struct SynthVolumeOptions {
  Extent size{128, 512, 512};  ///< voxels of level 0
  std::int64_t seed = 1;       ///< same seed, same bytes, on every machine

  std::vector<Option> Options();
  /// InvalidArgument where options contradict each other.
  Status Check() const;
};

/// Things that may be wrong, or unusual, with a synthetic series, in the order of their functions
/// in workers/jobs/synth/ct.cc.
inline constexpr std::string_view kCtFaults =
    "none missing-slice duplicate-slice tilt tilt-back variable-steps shifted-slice "
    "shuffled-names mixed-orientation mixed-spacing mixed-size mixed-kernel "
    "frame-of-reference frame-a-slice localiser-among no-rescale flipped-rows sagittal "
    "no-position over-time slope-change fractional-slope signedness high-bits enhanced "
    "frame-order mr not-hu localiser secondary-capture burned-in single-slice two-series "
    "no-extension truncated implicit big-endian deflated jpeg jpeg-ls rle";

struct SynthCtOptions {
  Extent size{24, 128, 128};                 ///< slices, rows, columns
  std::int64_t seed = 1;                     ///< same seed, same voxels
  double step_mm = 2.5, pixel_mm = 0.78125;  ///< from slice to slice, from pixel to pixel
  std::string fault = "none";                ///< one of kCtFaults
  /// "": none. Tumours and polyps, and their mask in this file: NIfTI, 1 and 2, others 0. No part
  /// of a payload.
  std::string lesions = {};

  std::vector<Option> Options();
  Status Check() const;
};

/// Most cards of a sheet.
inline constexpr std::int64_t kMaxPreviewCards = 64;

/// A pixel of level 0.
struct PreviewPlace {
  std::int64_t y = 0, x = 0;
};

struct PreviewOptions {
  std::int64_t patches = 8;
  std::string labels;  ///< label set drawn over images; "": the first
  std::string tissue;  ///< profile of tissue to draw; "": the set of the store, or else `clam`
  std::vector<std::string> options = {};  ///< its settings: ParseTissueOptions
  std::string at;                         ///< "Y,X" of what is shown of images; "": all of them
  double um = 500;                        ///< side of it

  std::vector<Option> Options();
  /// InvalidArgument for options that are none, or do not go together.
  Status Check() const;
  /// The place that `at` names.
  StatusOr<PreviewPlace> Place() const;
};

struct ScanOptions {
  bool hash = false;  ///< whether whole slides are read for their content hash

  std::vector<Option> Options();
};

}  // namespace patchbay
