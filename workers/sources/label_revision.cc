#include "workers/sources/label_revision.h"

#include "runtime/core/strings.h"
#include "runtime/model/plan/position_index.h"

namespace patchbay::workers {
namespace {

Status Gone(const std::string& set, const LabelRevision& revision) {
  const bool by_index = revision.by == LabelRevision::By::kIndex;
  return absl::NotFoundError(
      StrCat("the revision of the label set '", set, by_index ? "' whose index is " : "' that is ",
             revision.digest.Hex().substr(0, 16),
             "... is gone: it was pruned, or the store was made again",
             by_index ? "" : "; `patchbay lock --update` takes the current one"));
}

}  // namespace

StatusOr<zarr::OpenedLabelSet> OpenRevision(const Folders& allowed, const std::string& store,
                                            const std::string& set, const LabelRevision& revision) {
  if (revision.by == LabelRevision::By::kCurrent) return zarr::OpenLabelSet(allowed, store, set);
  StatusOr<zarr::OpenedLabelSet> found =
      revision.by == LabelRevision::By::kDigest
          ? zarr::OpenLabelRevision(allowed, store, set, revision.digest)
          : zarr::FindLabelRevision(allowed, store, set, plan::kPositionIndexFile, revision.digest);
  if (absl::IsNotFound(found.status())) return Gone(set, revision);
  return found;
}

}  // namespace patchbay::workers
