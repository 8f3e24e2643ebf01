// Errors that name a path once.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/core/strings.h"

namespace patchbay::workers {

/// The message of a failed status as "<doing>: <path>: <cause>"; "<doing>: <cause>" where the cause
/// names the path itself.
inline Status AboutPath(const Status& status, std::string_view doing, const std::string& path) {
  const bool is_named = MessageOf(status).find(path) != std::string_view::npos;
  return Annotate(status, is_named ? std::string(doing) : StrCat(doing, ": ", path));
}

}  // namespace patchbay::workers
