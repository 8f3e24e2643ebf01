#include "workers/jobs/ingest/ingest_publish.h"

#include <algorithm>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/zarr/inspect.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/opened_store.h"
#include "runtime/format/zarr/publish.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/format/zarr/store_tree.h"
#include "runtime/model/source/channel_names.h"
#include "runtime/model/source/modality.h"
#include "runtime/model/source/repair.h"
#include "runtime/os/file.h"
#include "runtime/os/file_names.h"
#include "runtime/os/folder_listing.h"
#include "workers/jobs/task/folder_tree.h"

namespace patchbay::workers {
namespace {

Status Damaged(const std::string& store, std::string_view what) {
  return ErrorAbout(absl::StatusCode::kDataLoss, "ingest", store,
                    StrCat("exists, but is damaged: ", what,
                           " (`patchbay verify` lists all faults; move it away to make it again)"));
}

/// Checks that every shard that the store lists exists as a regular file.
Status CheckNames(TaskContext& context, const std::string& store) {
  const auto opened = zarr::OpenStore(context.allowed, store);
  if (!opened.ok()) {
    const Status damaged =
        Annotate(WithCode(opened.status(), absl::StatusCode::kDataLoss), "exists, but is damaged");
    return WithAdvice(About(damaged, "ingest", store),
                      "`patchbay verify` lists all faults; move it away to make it again");
  }
  if (!opened->faults.empty()) return Damaged(store, opened->faults.front());
  for (std::size_t l = 0; l < opened->levels.size(); ++l) {
    for (const zarr::ShardPlace& place :
         zarr::PlacesOf(opened->settings, static_cast<int>(l), opened->levels[l].size)) {
      const auto listed = opened->Listed(place);
      if (!listed || !*listed) continue;
      const std::string name = opened->FileOf(place);
      PB_ASSIGN_OR_RETURN(const zarr::EntryKind kind,
                          zarr::EntryKindOf(context.allowed, store + "/" + name));
      if (kind == zarr::EntryKind::kNothing) return Damaged(store, StrCat(name, " is missing"));
      if (kind != zarr::EntryKind::kFile) {
        return Damaged(store, StrCat(name, " is ", zarr::NameOf(kind)));
      }
    }
    context.AddProgress();
    PB_RETURN_IF_ERROR(context.CheckCancelled());
  }
  return absl::OkStatus();
}

/// The name of the store of the task's slide if it exists; "" if not.
StatusOr<std::string> PublishedStore(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(IngestTask task, OpenIngestTask(context));
  PB_ASSIGN_OR_RETURN(SlideOutcome outcome, LoadOutcome(task));
  PB_ASSIGN_OR_RETURN(const Digest source, Digest::FromHex(outcome.source_sha256));
  PB_ASSIGN_OR_RETURN(const std::string name, StoreName(task, task.Source(), source));
  PB_ASSIGN_OR_RETURN(const bool there, AdoptFinishedStore(context, task, name, outcome));
  if (!there) return std::string();
  // A task that was late may have made a part of it again.
  RemoveTree(context, task.Staging()).IgnoreError();
  return name;
}

/// The published metadata as it was drafted, if a task that had lost its right wrote over it before
/// the store got its name.
Status RestoreMetadata(const Folders& allowed, const std::string& store,
                       const zarr::ImageStoreSpec& spec, const zarr::StoreRoots& roots) {
  const auto row = zarr::InspectStore(allowed, store);
  if (row.ok() && row->digest == roots.bytes.Hex() && row->pixel_digest == roots.pixels.Hex()) {
    return absl::OkStatus();
  }
  return zarr::DraftStoreMetadata(allowed, store, spec, roots);
}

/// Bytes of a store as ingest makes it, its metadata too; sets of labels in it are not counted.
std::uint64_t StoredBytesOf(TaskContext& context, const std::string& store) {
  const std::uint64_t all = BytesBelow(context, store);
  return all - std::min(all, BytesBelow(context, StrCat(store, "/", zarr::kLabelsFolder)));
}

/// The settings in which an existing store differs from the one that would be made.
std::string HowDiffers(const Json& attributes, const SlideOutcome& outcome, const Json& wanted) {
  if (attributes.value("source_sha256", "") != outcome.source_sha256) {
    return "was not made from this slide";
  }
  const Json made = attributes.value("codec_plan", Json::object());
  std::vector<std::string> differ;
  for (const auto& [key, value] : wanted.items()) {
    const Json before = made.is_object() ? made.value(key, Json()) : Json();
    if (before == value) continue;
    differ.push_back(StrCat(key, " was ", DumpJson(before), ", now ", DumpJson(value)));
  }
  if (made.is_object()) {
    for (const auto& [key, value] : made.items()) {
      if (!wanted.contains(key)) differ.push_back(StrCat(key, " was ", DumpJson(value)));
    }
  }
  return StrCat("was made from this slide with other settings (", StrJoin(differ, "; "), ")");
}

/// A volume that is there has the modality that `--modality` states. A table needs no such check:
/// streams go by it.
Status CheckModality(const std::string& wanted, const Json& attributes, const std::string& store) {
  const bool is_volume = attributes.contains("affine_lps");
  if (wanted.empty() || !is_volume) return absl::OkStatus();
  const auto recorded = RecordedModality(attributes);
  if (recorded && recorded->ToString() == wanted) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kAlreadyExists, "ingest", store,
                    StrCat("exists, and its modality is ",
                           recorded ? recorded->ToString() : std::string("not known"), ", not ",
                           wanted, "; a table's column `modality` settles it for streams"));
}

/// A volume that is there has the channels that would be made.
Status CheckChannels(const std::vector<std::string>& wanted, const Json& attributes,
                     const std::string& store) {
  const std::vector<std::string> there = ChannelNames(attributes);
  if (there == wanted) return absl::OkStatus();
  const auto list = [](const std::vector<std::string>& names) {
    return names.empty() ? std::string("one without a name") : StrJoin(names, ", ");
  };
  return ErrorAbout(absl::StatusCode::kAlreadyExists, "ingest", store,
                    StrCat("exists, and its channels are ", list(there), ", not ", list(wanted),
                           "; give another --out"));
}

/// A volume that is there has been repaired by rules that are consented to now.
Status CheckRepairs(const std::string& consented, const Json& attributes,
                    const std::string& store) {
  PB_ASSIGN_OR_RETURN(const Repairs rules, ParseRepairs(consented));
  for (const Repair made : RepairsIn(attributes.value("transform_log", Json::array()))) {
    if (rules.contains(made)) continue;
    return ErrorAbout(absl::StatusCode::kAlreadyExists, "ingest", store,
                      StrCat("exists, and was made with --repair ", NameOf(made)));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<bool> AdoptFinishedStore(TaskContext& context, const IngestTask& task,
                                  const std::string& name, SlideOutcome& outcome) {
  const std::string target = task.folders.InOut(name);
  if (!Exists(context.allowed, target, false)) return false;
  const Json attributes = zarr::OwnAttributes(context.allowed, target);
  PB_ASSIGN_OR_RETURN(const Json wanted, ParseJson(task.settings.Canonical(), "settings"));
  if (attributes.value("source_sha256", "") != outcome.source_sha256 ||
      attributes.value("codec_plan", Json()) != wanted) {
    return ErrorAbout(
        absl::StatusCode::kAlreadyExists, "ingest", target,
        StrCat("exists and ", HowDiffers(attributes, outcome, wanted),
               "; give another --out, or delete it first: its label sets go with it"));
  }
  PB_RETURN_IF_ERROR(CheckModality(task.settings.modality, attributes, target));
  PB_RETURN_IF_ERROR(CheckChannels(task.channels, attributes, target));
  PB_RETURN_IF_ERROR(CheckRepairs(task.settings.repair, attributes, target));
  PB_RETURN_IF_ERROR(CheckNames(context, target));
  PB_ASSIGN_OR_RETURN(const auto report, zarr::InspectStore(context.allowed, target));
  if (!report.digest || !report.pixel_digest) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "ingest", target, "it has no digests");
  }
  outcome.digest = *report.digest;
  outcome.pixel_digest = *report.pixel_digest;
  outcome.stored_bytes = StoredBytesOf(context, target);
  outcome.store = name;
  outcome.already_there = true;
  return true;
}

StatusOr<OpenedSource> OpenSource(TaskContext& context, IngestTask& task, const std::string& name,
                                  const Digest& source, std::uint64_t source_bytes) {
  OpenedSource opened;
  task.slide_key = opened.outcome.slide_key = SlideKey(source, task.settings, name);
  opened.outcome.source_sha256 = source.Hex();
  opened.outcome.source_bytes = source_bytes;
  PB_ASSIGN_OR_RETURN(opened.there, AdoptFinishedStore(context, task, name, opened.outcome));
  PB_RETURN_IF_ERROR(SaveOutcome(task, opened.outcome));
  return opened;
}

Status PublishStaged(TaskContext& context, const IngestTask& task, const CompleteStore& store,
                     const std::string& name, SlideOutcome& outcome) {
  const std::string target = task.folders.InOut(name);
  PB_RETURN_IF_ERROR(ShareFiles(context.allowed, store.path, context.sharing));
  PB_RETURN_IF_ERROR(zarr::PublishStore(context.allowed, store.path, target,
                                        [&context] { context.AddProgress(); }));
  PB_RETURN_IF_ERROR(RestoreMetadata(context.allowed, target, store.spec, store.roots));
  outcome.digest = store.roots.bytes.Hex();
  outcome.pixel_digest = store.roots.pixels.Hex();
  outcome.stored_bytes = StoredBytesOf(context, target);
  outcome.store = name;
  return absl::OkStatus();
}

StatusOr<TaskOutput> EndSource(TaskContext& context, const IngestTask& task,
                               const SlideOutcome& outcome) {
  PB_RETURN_IF_ERROR(SaveOutcome(task, outcome));
  RemoveTree(context, task.Staging()).IgnoreError();
  TaskOutput output;
  output.result = DumpJson(JsonOf(outcome.Row(task.slide)));
  return output;
}

StatusOr<TaskOutput> UnlessPublished(TaskContext& context, const Status& why) {
  const auto published = PublishedStore(context);
  if (!published.ok() || published->empty()) return why;
  TaskOutput nothing_left;
  nothing_left.result = DumpJson({{"published", *published}});
  return nothing_left;
}

}  // namespace patchbay::workers
