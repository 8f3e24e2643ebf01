// The options of `patchbay convert`: its flags, and the payload of its root task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/model/jobs/option.h"

namespace patchbay {

struct ConvertOptions {
  /// "zstd", "lz4" or "keep": a store; "ngff-0.4": a folder of planar chunks; else a file.
  std::string to;
  std::int64_t codec_level = 5;  ///< larger means smaller and slower to write
  /// JPEG in files, of lossless pixels; absent: they stay as they are.
  std::optional<std::int64_t> quality;

  std::vector<Option> Options();
  bool MakesStore() const { return to == "zstd" || to == "lz4" || to == "keep"; }
  bool MakesFolder() const { return MakesStore() || to == "ngff-0.4"; }
};

}  // namespace patchbay
