// --data-policy: what a user declares about the network between nodes.
#pragma once

#include <string>

#include "runtime/cli/command.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// --data-policy, "" when not given.
Argument PolicyArgument(std::string& policy);

/// Keeps the policy below PATCHBAY_HOME for the trainers of this machine; "" forgets it.
Status DeclarePolicy(const client::Environment& environment, const std::string& policy);

}  // namespace patchbay::cli
