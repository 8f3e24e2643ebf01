// Jobs that make label sets: submitted, watched, and what each row came to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/command.h"
#include "runtime/cli/labels/label_rows.h"
#include "runtime/core/outcome.h"
#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

struct LabelledRow {
  std::string store, file;  ///< `file` is empty where tissue was looked for
  Json report;              ///< null where it failed
  Outcome outcome;          ///< where it failed
};

struct LabelledRows {
  JobId job;
  std::vector<LabelledRow> rows;  ///< in the rows' order
  FilesByKind passed_over;        ///< of the rows
};

/// Input of the root task.
struct LabelsJobRequest {
  Json payload;
  std::string pseudonym_key = {};  ///< "": not needed
};

/// Runs the root task "labels.plan" over the rows to its end. Interrupted, a job of
/// an embedded cluster is cancelled; `command` is what its error begins with.
StatusOr<LabelledRows> RunLabelsJob(Session& session, OwnClusterArguments& own,
                                    const LabelRows& rows, LabelsJobRequest order,
                                    const std::string& command);

/// The class table of a report with its counts, for the terminal.
void SayClasses(Terminal& terminal, const Json& report);
/// "STORE: set NAME, REVISION".
void SayRevision(Terminal& terminal, const LabelledRow& row);

/// The end of the command: its JSON, the failures, the exit code (3: some failed). `say` says what
/// one row came to.
ExitCode EndLabelsJob(Session& session, const LabelledRows& results,
                      const std::function<void(Terminal&, const LabelledRow&)>& say);

}  // namespace patchbay::cli
