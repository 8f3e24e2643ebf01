// Checks that the rows of a table are different slides, by the digests of their contents.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "runtime/model/plan/cohort.h"

namespace patchbay::client {

/// The recorded content of a Patchbay store: the SHA-256 of its source and its pixel digest; ""
/// where the store does not record it, and for a path that is no store or cannot be read.
struct StoreContent {
  std::string source, pixels;
};
StoreContent ContentOfStore(const std::string& path);

/// The content of each row of a table, as far as it is known.
class CohortContents {
 public:
  /// Rows whose paths are stores are compared by the digests in the stores, other rows by
  /// content_hash. InvalidArgument naming the lines of two rows with the same content, and their
  /// splits if these differ (`split_column` is "" without splits). Slides without content_hash are
  /// not read. `folder` is the table's.
  static StatusOr<CohortContents> Of(const plan::CohortTable& table, const plan::CohortRows& rows,
                                     const std::string& split_column, const std::string& folder);

  /// Adds the digest of a row's image; `store` is the path that was read in place of the row's,
  /// or "". InvalidArgument when a row of another split has that content.
  Status Add(const plan::CohortTable& table, std::size_t row, const Digest& digest,
             const std::string& store);

  /// Rows in a split whose content is known, and so was compared.
  std::size_t compared() const { return compared_.size(); }

 private:
  /// The row that has `content` already, or null.
  const plan::CohortRow* Enter(const plan::CohortTable& table, std::size_t row,
                               const std::string& content);

  std::string split_column_;
  std::unordered_map<std::string, std::size_t> rows_;  ///< row by content; one in a split if any
  std::set<std::size_t> compared_;
};

}  // namespace patchbay::client
