#include "runtime/cli/labels/labels_job.h"

#include <utility>

#include "runtime/cli/labels/labels_report.h"

namespace patchbay::cli {

const StagedJobKind kLabelsKind = {
    .kind = "labels", .fill = FillLabelsReport, .say = SayLabelsReport};

SlideJobRequest LabelsJobOf(const LabelRows& rows, Json payload, const std::string& pseudonym_key) {
  SlideJobRequest request;
  request.kind = "labels";
  request.rows = request.manifest.label_rows = rows.rows;
  request.started_ns = SteadyNowNs();
  request.payload = std::move(payload);
  request.manifest.pseudonym_key = pseudonym_key;
  request.plan.skipped_files = rows.skipped_files;
  return request;
}

}  // namespace patchbay::cli
