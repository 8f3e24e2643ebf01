// The report of a labels job at its end: the set of each row, or its failure.
#pragma once

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {

/// From the job's last row and the results of its rows, as `labels.import` returns them.
Status FillLabelsReport(const protocol::JobRow& job, const Json& results, SlideReport& report);

/// Each set with its revision and content.
void SayLabelsReport(Terminal& terminal, const SlideReport& report);

}  // namespace patchbay::cli
