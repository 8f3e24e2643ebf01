// Whether the rows of a table are different slides, told by what their stores were made from.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/cohort.h"

namespace patchbay::client {

/// What a store of ours says its pixels are: the SHA-256 of what it was made from, and its pixel
/// digest; "" where it does not say, and for what is not a store or cannot be read.
struct StoreContent {
  std::string source, pixels;
};
StoreContent ContentOfStore(const std::string& path);

/// Rows whose paths are stores are told apart by those, other rows by content_hash. InvalidArgument
/// naming the lines of two rows of one content, and their splits where they differ (`split_column`
/// is "" without splits). Slides without content_hash are not looked into. `folder` is the table's.
Status CheckContentsApart(const plan::CohortTable& table, const plan::CohortRows& rows,
                          const std::string& split_column, const std::string& folder);

}  // namespace patchbay::client
