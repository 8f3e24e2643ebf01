#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/ingest/ingest_publish.h"

namespace patchbay::workers {
namespace {

constexpr char kTissueSet[] = "tissue";

}  // namespace

bool LacksTissue(const IngestTask& task, const std::string& store) {
  if (task.settings.tissue.empty()) return false;
  const auto sets = zarr::ReadLabelSets(task.folders.allowed, task.folders.InOut(store));
  // The task reports the fault of an unreadable list.
  return !sets.ok() || std::none_of(sets->begin(), sets->end(), [](const zarr::LabelSet& set) {
    return set.name == kTissueSet;
  });
}

void AddTissueTask(const IngestTask& task, const std::string& store, TaskOutput& output) {
  if (!LacksTissue(task, store)) return;
  Json own = PayloadOf(LabelsTissueOptions{kTissueSet, task.settings.tissue});
  own.update(JsonOf(LabelsPayload{.store = store}));
  output.spawned.push_back(task.Part("labels.import", "tissue", own));
}

}  // namespace patchbay::workers
