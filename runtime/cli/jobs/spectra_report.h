// The report of an analysis at its end: figures of each slide and of the cohort, failures with
// their reasons, the plots.
#pragma once

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {

/// From the job's last row and the result of its summary task, a results::SpectraSummary.
Status FillSpectraReport(const protocol::JobRow& job, const Json& summary, SlideReport& report);

/// The table on stdout, failures on stderr.
void SaySpectraReport(Terminal& terminal, const SlideReport& report);

}  // namespace patchbay::cli
