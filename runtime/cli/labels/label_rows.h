// Pairs of stores and annotation files: from a command line, or from a cohort table.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

/// One each, absolute paths.
struct LabelRows {
  std::vector<std::string> stores, files, sites;
  FilesByKind passed_over = {};  ///< in folders of stores that were named
};

/// The rows of the table that have an annotation: its file beside the table, its site, and of the
/// stores in `stores` the one made from the row's content_hash (or the row's path, where that is a
/// store). InvalidArgument or NotFound names the row: no store (ingest makes it), no such file.
StatusOr<LabelRows> LabelRowsOfTable(const std::string& table, const std::string& stores);

/// Stores as they were named, those below folders (sorted), or those of one table's rows; each
/// once, without files and sites. NotFound for what is not there, a folder without stores, and a
/// row without one.
StatusOr<LabelRows> StoreRowsOf(const std::vector<std::string>& paths, const std::string& stores);

/// A store and a file as they were named; NotFound for what is not there.
StatusOr<LabelRows> LabelRowOf(const std::string& store, const std::string& file,
                               const std::string& site);

}  // namespace patchbay::cli
