// The secret behind the names of stores.
#pragma once

#include <string>

#include "runtime/client/environment.h"
#include "runtime/client/site_file.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// 64 hex digits: the same slide gets the same name every time, and only the holder of the key can
/// tell which slide that is. At a site that has a key (client::Site) it is the site's: an error for
/// a home that cannot read it, or has another one. Otherwise it is made at the first call and kept
/// below PATCHBAY_HOME (owner-only).
StatusOr<std::string> PseudonymKey(const client::Environment& environment);

/// OK where the key that `site` names can be read, and this home has no other one.
Status CheckSiteKey(const client::Environment& environment, const client::Site& site);

/// Writes the home's key, or the site's, made if necessary, to `path`, owner-only. AlreadyExists
/// when the name is taken.
Status ExportPseudonymKey(const client::Environment& environment, const std::string& path);

/// Makes the key in the file at `path` that of this home. InvalidArgument for a file that is no
/// key, is a link, or that others may read; AlreadyExists when the home has another key, unless
/// `replace` is set: the same slides then get other names from now on.
Status ImportPseudonymKey(const client::Environment& environment, const std::string& path,
                          bool replace);

}  // namespace patchbay::cli
