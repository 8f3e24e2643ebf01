// The secret behind the names of stores.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/client/environment.h"

namespace patchbay::cli {

/// 64 hex digits, made at the first call and kept below PATCHBAY_HOME (owner-only): the same slide
/// gets the same name every time, and nobody without the key can tell which slide that is.
StatusOr<std::string> PseudonymKey(const client::Environment& environment);

}  // namespace patchbay::cli
