// The report of an ingest at its end: its stores, their sizes, its failures with their reasons.
#pragma once

#include "runtime/cli/jobs/slide_job.h"

namespace patchbay::cli {

/// From the job's last row and the result of its summary task, a results::IngestSummary. Each store
/// stands once, further sources of the same content as its copies.
Status FillIngestReport(const protocol::JobRow& job, const Json& summary, SlideReport& report);

/// Footprint table on stdout, failures on stderr.
void SayIngestReport(Terminal& terminal, const SlideReport& report);

}  // namespace patchbay::cli
