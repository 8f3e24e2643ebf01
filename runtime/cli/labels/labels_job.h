// Jobs that make label sets: a staged job without folder, one row of outcome a store.
#pragma once

#include <string>

#include "runtime/cli/jobs/slide_job.h"
#include "runtime/cli/labels/label_rows.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// The root task "labels.plan" over the rows, for RunStagedJob. `pseudonym_key`: "" where stores
/// keep nothing under it.
SlideJobRequest LabelsJobOf(const LabelRows& rows, Json payload,
                            const std::string& pseudonym_key = "");

}  // namespace patchbay::cli
