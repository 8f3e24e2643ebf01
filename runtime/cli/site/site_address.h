// The address of this machine on which other nodes of a site reach it.
#pragma once

#include <string>

#include "runtime/cli/site/site_engine.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// The named interface has it (an address stands for itself), else the one that faces the engine's
/// network. A usage error where there is none.
StatusOr<std::string> AddressInSite(const Engine& engine, const std::string& interface);

}  // namespace patchbay::cli
