#include "runtime/model/jobs/convert_options.h"

namespace patchbay {

std::vector<Option> ConvertOptions::Options() {
  return {
      {.name = "--to",
       .help = "a store of that codec, or a file; svs and tiff: of kept tiles",
       .target = &to,
       .required = true,
       .choices = {"zstd", "lz4", "svs", "tiff", "ome-tiff"},
       .always = true},
      {.name = "--codec-level",
       .value = "N",
       .help = "zstd and lz4: higher is smaller and slower",
       .target = &codec_level,
       .min = 1,
       .max = 9,
       .always = true},
  };
}

}  // namespace patchbay
