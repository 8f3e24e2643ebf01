// The file of `stream --position`, from which the next start of the same command goes on. The
// module for Python reads and writes the same form (runtime/python/patchbay/_position.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/status.h"

namespace patchbay::cli {

struct SavedPosition {
  std::string token;          ///< a resume token
  std::uint64_t batches = 0;  ///< taken before it by this command, all its starts together
};

/// Nothing while there is no file; NotFound when its folder is missing. FailedPrecondition for a
/// link, for what is no file, and for a file that others may read or own: its token would not be
/// this user's. InvalidArgument when it is broken.
StatusOr<std::optional<SavedPosition>> ReadPosition(const std::string& path);

/// Durable and atomic, mode 0600.
Status WritePosition(const std::string& path, const SavedPosition& position);

}  // namespace patchbay::cli
