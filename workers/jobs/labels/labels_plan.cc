// The labels job: its rows are its sources, and one task imports a row whole.
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/request.h"

namespace patchbay::workers {
namespace {

StatusOr<PlannedJob> FindRows(TaskContext& context, const StagedFolders& /*folders*/) {
  PB_ASSIGN_OR_RETURN(const LabelsRequest request, LabelsRequestOf(context));
  return PlannedJob{.sources = request.rows.size()};
}

constexpr Stage kStages[] = {{"import", RunLabelsImport}};

}  // namespace

const StagedJob kLabelsJob = {"labels", FindRows, kStages, nullptr, "row"};

}  // namespace patchbay::workers
