// Images that a plan leaves out, as commands show them.
#pragma once

#include "runtime/base/json.h"
#include "runtime/cli/terminal.h"
#include "runtime/client/stream_paths.h"

namespace patchbay::cli {

/// A note for each of the first.
void ReportSkipped(Terminal& terminal, const client::Skipped& skipped);

/// {"count", "images": [{"path", "reason"}, ...]}
Json ToJson(const client::Skipped& skipped);

}  // namespace patchbay::cli
