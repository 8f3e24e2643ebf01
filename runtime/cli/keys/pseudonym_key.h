// The secret behind the names of stores.
#pragma once

#include <string>

#include "runtime/client/environment.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// 64 hex digits, made at the first call and kept below PATCHBAY_HOME (owner-only): the same slide
/// gets the same name every time, and only the holder of the key can tell which slide that is.
StatusOr<std::string> PseudonymKey(const client::Environment& environment);

/// Writes the key, made if necessary, to `path`, owner-only. AlreadyExists when the name is taken.
Status ExportPseudonymKey(const client::Environment& environment, const std::string& path);

/// Makes the key in the file at `path` that of this home. InvalidArgument for a file that is no
/// key; AlreadyExists when the home has another key, unless `replace` is set: the same slides then
/// get other names from now on.
Status ImportPseudonymKey(const client::Environment& environment, const std::string& path,
                          bool replace);

}  // namespace patchbay::cli
