// OUT/manifest.csv, owner-only: the slide that each result was made from.
#pragma once

#include <map>
#include <string>

namespace patchbay::cli {

/// Column `key` to column `value` of the manifest.csv (RFC 4180, with a heading) of a job's output
/// folder; empty when it cannot be read or lacks a column. A row that is too short is passed over.
std::map<std::string, std::string> ReadManifestCsv(const std::string& folder,
                                                   const std::string& key,
                                                   const std::string& value);

}  // namespace patchbay::cli
