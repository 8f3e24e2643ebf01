// Which slide a store was made from, for those who may know: OUT/manifest.csv, owner-only.
#pragma once

#include <map>
#include <string>

namespace patchbay::cli {

/// Store name to source path, from the manifest.csv (RFC 4180) of a folder of stores; empty when it
/// cannot be read. A row that is not store,source,... is passed over.
std::map<std::string, std::string> ReadStoreSources(const std::string& folder);

}  // namespace patchbay::cli
