// The secret behind the names of stores.
#pragma once

#include <string>

#include "runtime/client/environment.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// 64 hex digits, made at the first call and kept below PATCHBAY_HOME (owner-only): the same slide
/// gets the same name every time, and nobody without the key can tell which slide that is.
StatusOr<std::string> PseudonymKey(const client::Environment& environment);

/// Writes the key to `path`, owner-only, where it makes one if need be. AlreadyExists when there is
/// something of that name.
Status ExportPseudonymKey(const client::Environment& environment, const std::string& path);

/// Makes the key in the file at `path` the one of this home. InvalidArgument for what is no key;
/// AlreadyExists when the home has another one, which `replace` replaces: the same slides get other
/// names from then on.
Status ImportPseudonymKey(const client::Environment& environment, const std::string& path,
                          bool replace);

}  // namespace patchbay::cli
