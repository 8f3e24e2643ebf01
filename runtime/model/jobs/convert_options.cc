#include "runtime/model/jobs/convert_options.h"

namespace patchbay {

std::vector<Option> ConvertOptions::Options() {
  return {
      {.name = "--to",
       .help = "a store of that codec, a file, or OME-Zarr 0.4",
       .target = &to,
       .required = true,
       .choices = {"zstd", "lz4", "keep", "svs", "tiff", "ome-tiff", "ngff-0.4"},
       .always = true},
      {.name = "--codec-level",
       .value = "N",
       .help = "zstd, lz4 and ngff-0.4: higher is smaller and slower",
       .target = &codec_level,
       .min = 1,
       .max = 9,
       .always = true},
      {.name = "--quality",
       .value = "N",
       .help = "svs, tiff, ome-tiff: RGB pixels as JPEG",
       .target = &quality,
       .min = 1,
       .max = 100,
       .otherwise = "lossless"},
  };
}

}  // namespace patchbay
