// The user's own functions that a worker may run, and the bytes of their files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "runtime/core/status.h"
#include "workers/access/path_rights.h"

namespace patchbay::workers {

inline constexpr std::size_t kMaxFunctionFileBytes = std::size_t{1} << 20;

/// Decided by the program that starts the worker; without an interpreter it runs none.
struct FunctionPolicy {
  /// Path or name of the Python that runs them.
  std::string interpreter = {};
  /// Workers and streams are one user's, who may run any file; else `files` alone.
  bool is_users_own = false;
  std::vector<std::string> files = {};  ///< the operator's list, absolute

  /// {"python": ..., "files": [...]}, or without `files` for a user's own workers; "" = none.
  static StatusOr<FunctionPolicy> FromText(const std::string& text);
};

/// The file of a function, as it will be run.
struct FunctionFile {
  std::string path;  ///< canonical
  std::string bytes;
  Digest digest;
};

/// Reads a file that the policy lets run: of a user's own workers any that `rights` let be read,
/// else one of the operator's list. InvalidArgument, with a remedy, for other files; it does not
/// name the path.
StatusOr<FunctionFile> ReadFunctionFile(const FunctionPolicy& policy, const PathRights& rights,
                                        const std::string& path);

}  // namespace patchbay::workers
