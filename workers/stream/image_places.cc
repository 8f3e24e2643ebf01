#include "workers/stream/image_places.h"

#include <optional>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/positions/position_index.h"
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
  Digest digest;  ///< as the set records it
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
  const auto found = OpenRevision(allowed, store, set, revision);
  if (absl::IsNotFound(found.status())) {
    return Annotate(WithCode(found.status(), absl::StatusCode::kFailedPrecondition),
                    StrCat("key '", key, "'"));
  }
  if (!found.ok()) return found.status();
  const zarr::OpenedLabelSet& opened = **found;
  StatusOr<std::string> text =
      ReadFile(allowed, StrCat(opened.path, "/", file.name), file.most_bytes);
  if (absl::IsNotFound(text.status())) {
    return refuse(StrCat("the label set '", set, "' has no index of its places: import it again"));
  }
  if (!text.ok()) return text.status();
  const Digest digest = Sha256Of(*text);
  const Json files = opened.attributes.value("files", Json::object());
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
  PB_ASSIGN_OR_RETURN(loaded.index, plan::DecodePositionIndex(text.text, plan::VouchedBy::kDigest));
  loaded.digest = text.digest;
  return loaded;
}

/// Each that the config asks for.
struct LoadedIndexes {
  std::optional<plan::PositionIndex> tissue, classes;
  std::optional<plan::ComponentIndex> components;
  std::vector<Digest> digests;

  plan::PlaceIndexes Wanted() const {
    return {.tissue = tissue ? &*tissue : nullptr,
            .classes = classes ? &*classes : nullptr,
            .components = components ? &*components : nullptr};
  }
};

StatusOr<LoadedIndexes> LoadIndexes(const Folders& allowed, const plan::RunConfig& config,
                                    const std::string& store, const PlaceRevisions& revisions) {
  LoadedIndexes loaded;
  const auto load = [&](const std::string& set, const LabelRevision& revision,
                        std::string_view key) -> StatusOr<plan::PositionIndex> {
    PB_ASSIGN_OR_RETURN(LoadedIndex one, LoadIndex(allowed, store, set, revision, key));
    loaded.digests.push_back(one.digest);
    return std::move(one.index);
  };
  if (config.tissue_fraction) {
    PB_ASSIGN_OR_RETURN(loaded.tissue,
                        load(config.tissue_set, revisions.tissue, "sampling.tissue"));
  }
  if (!config.class_weights.empty() || config.foreground) {
    PB_ASSIGN_OR_RETURN(loaded.classes, load(config.labels.set, revisions.classes, "labels.set"));
  }
  if (config.foreground && config.foreground->by_component) {
    PB_ASSIGN_OR_RETURN(
        const IndexText text,
        ReadIndex(allowed, store, config.labels.set, revisions.classes, "labels.set",
                  {plan::kComponentIndexFile, plan::kMaxComponentIndexBytes}));
    PB_ASSIGN_OR_RETURN(loaded.components, plan::DecodeComponentIndex(text.text));
    loaded.digests.push_back(text.digest);
  }
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
  PB_ASSIGN_OR_RETURN(LoadedIndexes indexes, LoadIndexes(allowed, config, store, revisions));
  PB_ASSIGN_OR_RETURN(plan::ImagePlaces places,
                      plan::ImagePlaces::Of(config, image, indexes.Wanted()));
  return LoadedPlaces{std::move(indexes.digests), std::move(places)};
}

StatusOr<CountedPlaces> CountPlaces(const Folders& allowed, const plan::RunConfig& config,
                                    const plan::PlannedImage& image, const std::string& store,
                                    const PlaceRevisions& revisions) {
  PB_ASSIGN_OR_RETURN(LoadedIndexes indexes, LoadIndexes(allowed, config, store, revisions));
  PB_ASSIGN_OR_RETURN(auto counts, plan::ImagePlaces::CountsOf(config, image, indexes.Wanted()));
  return CountedPlaces{std::move(indexes.digests), std::move(counts)};
}

StatusOr<std::shared_ptr<const zarr::OpenedLabelSet>> OpenRevision(const Folders& allowed,
                                                                   const std::string& store,
                                                                   const std::string& set,
                                                                   const LabelRevision& revision) {
  using enum LabelRevision::By;
  if (revision.opened != nullptr) return revision.opened;
  StatusOr<zarr::OpenedLabelSet> found =
      revision.by == kCurrent ? zarr::OpenLabelSet(allowed, store, set)
      : revision.by == kDigest
          ? zarr::OpenLabelRevision(allowed, store, set, revision.digest)
          : zarr::FindLabelRevision(allowed, store, set, plan::kPositionIndexFile, revision.digest);
  if (revision.by != kCurrent && absl::IsNotFound(found.status())) return Gone(set, revision);
  if (!found.ok()) return found.status();
  return std::make_shared<const zarr::OpenedLabelSet>(*std::move(found));
}

}  // namespace patchbay::workers
