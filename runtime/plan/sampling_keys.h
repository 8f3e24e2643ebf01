// The section `sampling` of a run config.
#pragma once

#include "runtime/base/json.h"
#include "runtime/config/key_table.h"
#include "runtime/plan/run_config.h"

namespace patchbay::plan {

config::Key SamplingKeys();

/// Whether a text can name a label set: the name of a folder in a store.
Status CheckSetName(const Json& name);

/// From and to the checked section; `config.patch` is set.
void ReadSampling(const Json& sampling, RunConfig& config);
Json SamplingToJson(const RunConfig& config);

/// What is wrong between the section and the rest of a checked config: a key and a cause.
struct SamplingFault {
  std::string key, cause;
};
std::optional<SamplingFault> FindSamplingFault(const Json& config);

}  // namespace patchbay::plan
