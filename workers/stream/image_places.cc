#include "workers/stream/image_places.h"

#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/position_index.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"

namespace patchbay::workers {
namespace {

/// A file of a revision of a label set.
struct IndexFile {
  const char* name = nullptr;
  std::size_t most_bytes = 0;
};
struct IndexText {
  std::string text;
  Digest digest;
};

StatusOr<IndexText> ReadIndex(const Folders& allowed, const std::string& store,
                              const std::string& set, const LabelRevision& revision,
                              std::string_view key, const IndexFile& file) {
  const auto refuse = [&](std::string_view cause) {
    return FailedPrecondition("key '", key, "': ", cause);
  };
  if (!IsFolder(allowed, store)) {
    return refuse("a slide has no label sets: ingest it, and name the folder of its store");
  }
  const StatusOr<zarr::OpenedLabelSet> opened = OpenRevision(allowed, store, set, revision);
  if (absl::IsNotFound(opened.status())) {
    return Annotate(WithCode(opened.status(), absl::StatusCode::kFailedPrecondition),
                    StrCat("key '", key, "'"));
  }
  if (!opened.ok()) return opened.status();
  StatusOr<std::string> text =
      ReadFile(allowed, StrCat(opened->path, "/", file.name), file.most_bytes);
  if (absl::IsNotFound(text.status())) {
    return refuse(StrCat("the label set '", set, "' has no index of its places: import it again"));
  }
  if (!text.ok()) return text.status();
  const Digest digest = Sha256Of(*text);
  const Json files = opened->attributes.value("files", Json::object());
  if (files.is_object() && files.value(file.name, Json()) == digest.Hex()) {
    return IndexText{*std::move(text), digest};
  }
  return DataLoss("key '", key, "': the label set '", set, "': its ", file.name,
                  " is another file than was written: import it again");
}

struct LoadedIndex {
  plan::PositionIndex index;
  Digest digest;
};

StatusOr<LoadedIndex> LoadIndex(const Folders& allowed, const std::string& store,
                                const std::string& set, const LabelRevision& revision,
                                std::string_view key) {
  PB_ASSIGN_OR_RETURN(const IndexText text,
                      ReadIndex(allowed, store, set, revision, key,
                                {plan::kPositionIndexFile, plan::kMaxPositionIndexBytes}));
  LoadedIndex loaded;
  PB_ASSIGN_OR_RETURN(loaded.index, plan::DecodePositionIndex(text.text));
  loaded.digest = text.digest;
  return loaded;
}

Status Gone(const std::string& set, const LabelRevision& revision) {
  const bool by_index = revision.by == LabelRevision::By::kIndex;
  return NotFound("the revision of the label set '", set,
                  by_index ? "' whose index is " : "' that is ",
                  revision.digest.Hex().substr(0, 16),
                  "... is gone: it was pruned, or the store was made again",
                  by_index ? "" : "; `patchbay lock --update` takes the current one");
}

}  // namespace

PlaceRevisions RevisionsOfIndexes(const plan::RunConfig& config,
                                  const std::vector<Digest>& indexes) {
  PlaceRevisions revisions;
  std::size_t next = 0;
  const auto take = [&](LabelRevision& revision) {
    if (next < indexes.size()) revision = {LabelRevision::By::kIndex, indexes[next++]};
  };
  if (config.tissue_fraction) take(revisions.tissue);
  // An index of components lies in the same revision.
  if (!config.class_weights.empty() || config.foreground) take(revisions.classes);
  return revisions;
}

StatusOr<LoadedPlaces> LoadPlaces(const Folders& allowed, const plan::RunConfig& config,
                                  const plan::PlannedImage& image, const std::string& store,
                                  const PlaceRevisions& revisions) {
  std::vector<Digest> digests;
  LoadedIndex tissue, classes;
  plan::ComponentIndex components;
  const bool by_class = !config.class_weights.empty() || config.foreground;
  const bool by_component = config.foreground && config.foreground->by_component;
  if (config.tissue_fraction) {
    PB_ASSIGN_OR_RETURN(
        tissue, LoadIndex(allowed, store, config.tissue_set, revisions.tissue, "sampling.tissue"));
    digests.push_back(tissue.digest);
  }
  if (by_class) {
    PB_ASSIGN_OR_RETURN(
        classes, LoadIndex(allowed, store, config.labels.set, revisions.classes, "labels.set"));
    digests.push_back(classes.digest);
  }
  if (by_component) {
    PB_ASSIGN_OR_RETURN(
        const IndexText text,
        ReadIndex(allowed, store, config.labels.set, revisions.classes, "labels.set",
                  {plan::kComponentIndexFile, plan::kMaxComponentIndexBytes}));
    PB_ASSIGN_OR_RETURN(components, plan::DecodeComponentIndex(text.text));
    digests.push_back(text.digest);
  }
  PB_ASSIGN_OR_RETURN(
      plan::ImagePlaces places,
      plan::ImagePlaces::Of(config, image,
                            {.tissue = config.tissue_fraction ? &tissue.index : nullptr,
                             .classes = by_class ? &classes.index : nullptr,
                             .components = by_component ? &components : nullptr}));
  return LoadedPlaces{std::move(digests), std::move(places)};
}

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
