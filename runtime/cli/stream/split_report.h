// The report on the splits of a run's table, and on the rows that were compared for leaks.
#pragma once

#include "runtime/cli/terminal.h"
#include "runtime/client/run_file.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// Says how many rows each split has, by how many rows patients and contents were compared, and
/// beside the result what was not. {"rows": {split: count}, "roles": {split: role},
/// "without_split", "compared": {"rows", "patient_id", "content"}, "notices"}; null for a run
/// without splits, of which nothing is said.
Json ReportSplits(Terminal& terminal, const client::RunFile& run);

}  // namespace patchbay::cli
