// Keys of a run config with a file of their own: the section `sampling`, those of bags, and those
// of `patchbay map`.
#pragma once

#include <optional>
#include <vector>

#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

config::Key SamplingKeys();

/// Whether a text can name a label set: the name of a folder in a store.
Status CheckSetName(const Json& name);

/// From and to the checked section; `config.patch` is set.
void ReadSampling(const Json& sampling, RunConfig& config);
Json SamplingToJson(const RunConfig& config);

/// A contradiction between the section and the rest of a checked config: its key and its cause.
struct SamplingFault {
  std::string key, cause;
};
std::optional<SamplingFault> FindSamplingFault(const Json& config);

/// `by` and `patches` of `batch`.
std::vector<config::Key> BagKeys();
/// Patches of a bag by the checked section `batch`; 0 without bags.
std::uint32_t BagOf(const Json& batch);
/// A contradiction between bags and the rest of a checked config.
std::optional<SamplingFault> FindBagFault(const Json& config);
/// Merges a split's `batch` into that of the run.
void MergeBatch(const Json& split, Json& batch);

/// `outputs` and `weights`.
std::vector<config::Key> MapKeys();

/// A map takes every patch once, as it is, image by image. `value` is the config of one split.
std::optional<SamplingFault> FindMapFault(const Json& value);

}  // namespace patchbay::plan
