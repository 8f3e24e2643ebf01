// The options of `patchbay convert`: its flags, and the payload of its root task.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model/jobs/option.h"

namespace patchbay {

struct ConvertOptions {
  std::string to;                ///< "zstd" or "lz4": a store; "svs" or "tiff": a file of its tiles
  std::int64_t codec_level = 5;  ///< larger means smaller and slower to write

  std::vector<Option> Options();
  bool MakesStore() const { return to == "zstd" || to == "lz4"; }
};

}  // namespace patchbay
