// A run config as a command reads it: checked, with its dataset's paths made absolute.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/plan/run_config.h"

namespace patchbay::cli {

struct RunFile {
  std::string path;       ///< of the file, as it was given
  config::YamlNode yaml;  ///< as written
  plan::RunConfig config;
  std::vector<std::string> images;  ///< the dataset's entries, absolute

  /// What a stream job's root task is given; names no path.
  Json Payload() const;
  Json Manifest() const { return {{"images", images}}; }

  /// An error that names one of the config's keys ("key 'batch.prefetch': ...") with file and line
  /// before it, as a usage error; others as they are.
  Status Locate(const Status& status) const;
};

/// Relative entries of the dataset are relative to the current folder. A config that is wrong is a
/// usage error naming file and line.
StatusOr<RunFile> ReadRunFile(const std::string& path);

/// Slots beside the ring that a batch can move to when a frozen worker holds its own; counted in
/// plan::kSlotsBesidePrefetch.
inline constexpr std::uint32_t kStreamSpares = 1;

}  // namespace patchbay::cli
