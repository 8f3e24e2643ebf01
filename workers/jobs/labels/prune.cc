// Old revisions of label sets, and whole sets, taken out of stores.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/labels_folder.h"
#include "workers/jobs/task/folder_tree.h"

namespace patchbay::workers {
namespace {

namespace fs = std::filesystem;

struct PruneRequest {
  std::string set;  ///< "": all sets
  bool dry_run = false;
  bool is_whole_set = false;        ///< the current revision goes as well, unless it is kept
  std::set<std::string> kept = {};  ///< revisions that stay, by folder name
};

/// The revision is renamed first, so that a reader finds it whole or not at all.
Status Remove(TaskContext& context, const LabelsFolder& folder, const std::string& revision) {
  PB_RETURN_IF_ERROR(
      MakeDirectories(context.allowed, fs::path(folder.Staging()).parent_path().string()));
  PB_RETURN_IF_ERROR(RenameFile(context.allowed, folder.Of(revision), folder.Staging()));
  return RemoveTree(context, folder.Staging());
}

StatusOr<PrunedStore> PruneStore(TaskContext& context, const PruneRequest& request,
                                 const std::string& listed, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const std::string store,
                      request.dry_run ? context.MayRead(listed) : context.MayWrite(listed));
  if (!zarr::IsStore(context.allowed, store)) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, what, listed, "not a store");
  }
  PrunedStore pruned{listed, {}, {}};
  std::optional<LabelsFolder> folder;
  if (!request.dry_run && IsFolder(context.allowed, StrCat(store, "/", zarr::kLabelsFolder))) {
    PB_ASSIGN_OR_RETURN(folder, LabelsFolder::Open(context, store));
  }
  PB_ASSIGN_OR_RETURN(const std::vector<zarr::LabelSet> sets,
                      zarr::ReadLabelSets(context.allowed, store));
  PB_ASSIGN_OR_RETURN(const zarr::LabelFolders folders,
                      zarr::ListLabelFolders(context.allowed, store));
  for (const std::string& revision : folders.revisions) {
    const bool is_asked = request.set.empty() || revision.rfind(request.set + ".", 0) == 0;
    const bool is_current = std::any_of(sets.begin(), sets.end(), [&](const zarr::LabelSet& set) {
      return set.revision == revision;
    });
    if (!is_asked || (is_current && !request.is_whole_set)) continue;
    const bool stays = request.kept.contains(revision);
    (stays ? pruned.kept : pruned.removed).push_back(revision);
    if (stays) continue;
    // Out of the list first: a kill in between leaves a revision that the next pruning removes.
    if (is_current && !request.dry_run) {
      PB_RETURN_IF_ERROR(zarr::MakeAbsent(context.allowed, store, request.set));
    }
    pruned.bytes += BytesBelow(context, StrCat(store, "/", zarr::kLabelsFolder, "/", revision));
    if (!request.dry_run) PB_RETURN_IF_ERROR(Remove(context, *folder, revision));
    context.AddProgress();
  }
  return pruned;
}

StatusOr<TaskOutput> PruneStores(TaskContext& context, PruneRequest request,
                                 std::string_view what) {
  PB_ASSIGN_OR_RETURN(const auto manifest, FromJson<JobManifest>(context.manifest, what));
  request.kept.insert(manifest.kept.begin(), manifest.kept.end());
  std::vector<PrunedStore> pruned;
  for (const std::string& store : manifest.images) {
    PB_RETURN_IF_ERROR(context.CheckCancelled());
    PB_ASSIGN_OR_RETURN(pruned.emplace_back(), PruneStore(context, request, store, what));
  }
  TaskOutput output;
  output.result = DumpJson(JsonOf(pruned));
  return output;
}

}  // namespace

StatusOr<TaskOutput> RunLabelsPrune(TaskContext& context) {
  constexpr std::string_view kWhat = "prune labels";
  PB_ASSIGN_OR_RETURN(const auto asked, ReadPayload<LabelsPruneOptions>(context.payload, kWhat));
  return PruneStores(context, {.set = asked.set, .dry_run = asked.dry_run}, kWhat);
}

StatusOr<TaskOutput> RunLabelsDelete(TaskContext& context) {
  constexpr std::string_view kWhat = "delete labels";
  PB_ASSIGN_OR_RETURN(const auto asked, ReadPayload<LabelsDeleteOptions>(context.payload, kWhat));
  return PruneStores(context, {.set = asked.set, .dry_run = asked.dry_run, .is_whole_set = true},
                     kWhat);
}

}  // namespace patchbay::workers
