// Images that a plan leaves out, as commands show them.
#pragma once

#include "runtime/cli/terminal.h"
#include "runtime/client/stream_paths.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// Files that are passed over, and a note for each of the first images.
void ReportSkipped(Terminal& terminal, const client::Skipped& skipped);

/// {"count", "images": [{"path", "reason"}, ...]}
Json ToJson(const client::Skipped& skipped);

}  // namespace patchbay::cli
