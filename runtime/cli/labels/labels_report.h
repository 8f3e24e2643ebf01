// Rows of a labels job, each with its set or its failure, for people.
#pragma once

#include <string>

#include "runtime/cli/terminal.h"
#include "runtime/core/outcome.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

struct LabelledRow {
  std::string store, file;  ///< `file` is empty where tissue was looked for
  Json report;              ///< null where it failed
  Outcome outcome;          ///< where it failed
};

/// Prints the label set of a row with a report: its revision and its content.
void SayLabels(Terminal& terminal, const LabelledRow& row);

}  // namespace patchbay::cli
