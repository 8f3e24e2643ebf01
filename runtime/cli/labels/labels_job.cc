#include "runtime/cli/labels/labels_job.h"

#include <utility>

#include "runtime/cli/labels/labels_report.h"

namespace patchbay::cli {

const StagedJobKind kLabelsKind = {
    .kind = "labels", .fill = FillLabelsReport, .say = SayLabelsReport};

SlideJobRequest LabelsJobOf(const LabelRows& rows, Json payload, const std::string& pseudonym_key) {
  SlideJobRequest request;
  request.kind = "labels";
  request.stores = rows.Stores();
  for (const LabelRow& row : rows.rows) {
    if (!row.file.empty()) request.sources.push_back(row.file);
  }
  request.started_ns = SteadyNowNs();
  request.payload = std::move(payload);
  request.manifest = {{"images", request.stores}};
  if (!request.sources.empty()) request.manifest["sources"] = request.sources;
  if (!pseudonym_key.empty()) request.manifest["pseudonym_key"] = pseudonym_key;
  request.skipped_files = rows.skipped_files;
  return request;
}

}  // namespace patchbay::cli
