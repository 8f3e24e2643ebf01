// Files in folders that a command was given and that it does not read, as commands show them.
#pragma once

#include "runtime/cli/terminal.h"
#include "runtime/format/json/json.h"
#include "runtime/model/source/file_kind.h"

namespace patchbay::cli {

/// Prints "skipped: 3 .dcm, 1 other", or nothing. Every command that lists folders calls it
/// once.
void PrintSkipped(Terminal& terminal, const FilesByKind& skipped_files);

/// The member "skipped_files" of a task's result; none without one.
FilesByKind SkippedOf(const Json& result);

}  // namespace patchbay::cli
