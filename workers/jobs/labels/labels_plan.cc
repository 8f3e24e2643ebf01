// The root task: one import for each row.
#include "runtime/core/strings.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/request.h"

namespace patchbay::workers {

StatusOr<TaskOutput> RunLabelsPlan(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const LabelsRequest request, LabelsRequestOf(context));
  TaskOutput output;
  for (std::size_t row = 0; row < request.rows.size(); ++row) {
    Json payload = context.payload;
    payload["row"] = row;
    protocol::TaskSpec import;
    import.op = "labels.import";
    import.payload = DumpJson(payload);
    import.group = static_cast<std::uint32_t>(row) + 1;
    import.label = StrCat("row ", row);
    output.spawned.push_back(std::move(import));
  }
  output.result = DumpJson({{"rows", request.rows.size()}});
  return output;
}

}  // namespace patchbay::workers
