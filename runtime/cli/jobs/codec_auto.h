// `--codec auto` of ingest: the codec that the output folder has already, or the best by
// measurements.
#pragma once

#include <cstdint>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/terminal.h"
#include "runtime/core/status.h"
#include "runtime/model/jobs/ingest_settings.h"

namespace patchbay::cli {

/// The codec of an output folder's unfinished jobs, or of its stores; "" where it has none. A usage
/// error where its stores differ.
StatusOr<std::string> CodecOfFolder(const std::string& out);

/// Replaces `auto` in the payload of `request`, as if the codec had been named: once a job, before
/// it is submitted. Says why on the terminal, with a table of what was measured, and leaves it in
/// the request for programs. Call it under an InterruptScope.
Status SettleCodec(Terminal& terminal, const IngestSettings& settings, std::int64_t cores,
                   SlideJobRequest& request);

}  // namespace patchbay::cli
