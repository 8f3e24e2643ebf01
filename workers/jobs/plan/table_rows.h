// The rows of a table of images, as they come with a stream's job: each is one image, which is the
// store made from the row's content where there is one, else what the row's path names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {

/// Digits of a SHA-256 that tell contents apart here: 128 bits.
inline constexpr std::size_t kContentDigits = 32;

/// Stores by kContentDigits of the SHA-256 of what they were made from.
using StoresByContent = std::map<std::string, std::string>;

/// How the list of images (PathsToJson) goes on for a table.
struct ListedRows {
  std::vector<std::string> contents;  ///< of each image: kContentDigits, or "" where not known
  /// For images whose content is not known before they are read; else empty.
  StoresByContent stores;
  bool has_stores = false;  ///< the config names a folder of stores
};

/// Whether a job's dataset is a table.
bool IsTable(const Json& manifest);

/// The images of a table in its order, and what their tasks need to know of them. PermissionDenied
/// and NotFound for the folder of stores; InvalidArgument when a row's content has two stores. Rows
/// are not opened: one that names nothing fails when it is.
StatusOr<std::vector<std::string>> ListRows(TaskContext& context, ListedRows& listed);

/// {"contents", "stores", "has_stores"}, and back.
Json ToJson(const ListedRows& listed);
StatusOr<ListedRows> ListedRowsFromJson(const Json& value);

}  // namespace patchbay::workers
