// Refuses numbers and keys of a run config that are valid but cannot be intended, with a likely
// correction. Checks that need only the config run before an image is opened.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/dtype.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/yaml.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

/// A key as messages name it, and why it has no effect.
struct IdleKey {
  std::string key, cause;
};

/// A key of a file that changes nothing: an op without the options that make it act (the identity
/// and `p: 0` may be stated), a label set that nothing reads in any split. `checked` is the file
/// with every default filled in.
std::optional<IdleKey> FindIdleKey(const OpTable& ops, const config::YamlNode& file,
                                   const Json& checked);

/// InvalidArgument, as CheckOps words it, for normalised values in batches of uint8.
Status CheckBatchType(const RunConfig& config);

/// InvalidArgument, as CheckOps words it, for a normalize whose numbers belong to another scale
/// than images of this type have.
Status CheckNormalize(const RunConfig& config, DType images);

/// Why patch.mpp looks like a magnification; empty where it does not.
std::string DoubtfulMpp(const RunConfig& config);

}  // namespace patchbay::plan
