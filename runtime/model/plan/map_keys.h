// The keys of a run config that are for `patchbay map`.
#pragma once

#include <optional>
#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/plan/sampling_keys.h"

namespace patchbay::plan {

/// `outputs` and `weights`.
std::vector<config::Key> MapKeys();

/// A map takes every patch once, as it is, image by image. `value` is the config of one split.
std::optional<SamplingFault> FindMapFault(const Json& value);

}  // namespace patchbay::plan
