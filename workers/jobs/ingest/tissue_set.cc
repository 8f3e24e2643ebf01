#include "workers/jobs/ingest/tissue_set.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"

namespace patchbay::workers {
namespace {

constexpr char kTissueSet[] = "tissue";

}  // namespace

bool LacksTissue(const IngestFolders& folders, const IngestSettings& settings,
                 const std::string& store) {
  if (settings.tissue.empty()) return false;
  const auto sets = zarr::ReadLabelSets(folders.allowed, StrCat(folders.out, "/", store));
  // The task says what is wrong with a list that cannot be read.
  return !sets.ok() || std::none_of(sets->begin(), sets->end(), [](const zarr::LabelSet& set) {
    return set.name == kTissueSet;
  });
}

void AddTissueTask(const IngestFolders& folders, const IngestSettings& settings, std::int64_t slide,
                   const std::string& store, TaskOutput& output) {
  if (!LacksTissue(folders, settings, store)) return;
  protocol::TaskSpec task;
  task.op = "labels.import";
  task.payload = DumpJson({{"set", kTissueSet},
                           {"profile", settings.tissue},
                           {"row", 0},
                           {"slide", slide},
                           {"store", store}});
  task.group = static_cast<std::uint32_t>(slide) + 1;
  task.label = StrCat("slide ", slide, " tissue");
  output.spawned.push_back(std::move(task));
}

}  // namespace patchbay::workers
