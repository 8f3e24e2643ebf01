#include "workers/jobs/labels/request.h"

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/label_options.h"
#include "workers/access/planned_images.h"
#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "labels payload";

/// Joins the lists of the message; those of annotations and sites are read only where `has_files`.
StatusOr<std::vector<LabelRow>> RowsOf(const TaskContext& context, std::vector<std::string> stores,
                                       bool has_files) {
  if (stores.empty() || stores.size() > kMaxSlides) {
    return InvalidArgument("labels manifest: ", stores.size(), " rows, expected 1 to ", kMaxSlides);
  }
  std::vector<LabelRow> rows;
  for (std::string& store : stores) rows.push_back({std::move(store)});
  if (!has_files) return rows;
  PB_ASSIGN_OR_RETURN(const auto sites, ManifestPaths(context.payload, "sites"));
  PB_ASSIGN_OR_RETURN(const auto annotations, ManifestPaths(context.manifest, "sources"));
  if (annotations.size() != rows.size() || sites.size() != rows.size()) {
    return InvalidArgument("labels manifest: stores, annotations and sites differ");
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].annotation = annotations[i];
    rows[i].site = sites[i];
  }
  return rows;
}

Status TakeTissue(const Json& payload, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(
      const auto options,
      ReadPayload<LabelsTissueOptions>(payload, kWhat, {"row", "slide", "store", "job_key"}));
  request.set = options.set;
  PB_ASSIGN_OR_RETURN(request.tissue, TissueProfileOf(options.profile));
  request.classes = TissueClasses();
  return absl::OkStatus();
}

Status TakeAnnotations(const TaskContext& context, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(const Json* classes, JsonMember(context.payload, "classes", kWhat));
  PB_ASSIGN_OR_RETURN(request.classes, plan::ClassTableFromJson(*classes, "class table"));
  PB_ASSIGN_OR_RETURN(const auto options, ReadPayload<LabelsImportOptions>(
                                              context.payload, kWhat, {"classes", "sites", "row"}));
  request.set = options.set;
  request.dry_run = options.dry_run;
  request.clip = options.clip;
  PB_ASSIGN_OR_RETURN(request.origin, OriginOf(options.origin));
  return absl::OkStatus();
}

/// The store that a task of an ingest is for: its name in the job's folder of stores.
StatusOr<std::string> TakeIngested(const TaskContext& context, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::string store, JsonString(context.payload, "store", kWhat));
  PB_ASSIGN_OR_RETURN(request.slide, JsonCount(context.payload, "slide", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string out, JsonString(context.manifest, "out", "manifest"));
  if (store.empty() || store.front() == '.' || store.find('/') != std::string::npos) {
    return InvalidArgument(kWhat, ": store: not the name of a store");
  }
  return StrCat(out, "/", store);
}

}  // namespace

StatusOr<LabelsRequest> LabelsRequestOf(const TaskContext& context) {
  LabelsRequest request;
  PB_RETURN_IF_ERROR(context.payload.contains("profile") ? TakeTissue(context.payload, request)
                                                         : TakeAnnotations(context, request));
  if (!zarr::IsSetName(request.set)) {
    return InvalidArgument("import labels: set '", request.set,
                           "': a name is lower-case letters, digits, _ and -, at most 64");
  }
  std::vector<std::string> stores;
  if (context.payload.contains("store")) {
    PB_ASSIGN_OR_RETURN(stores.emplace_back(), TakeIngested(context, request));
  } else {
    PB_ASSIGN_OR_RETURN(stores, ManifestPaths(context.manifest, "images"));
  }
  PB_ASSIGN_OR_RETURN(request.rows, RowsOf(context, std::move(stores), !request.tissue));
  return request;
}

StatusOr<std::size_t> RowOf(const TaskContext& context, const LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t row, JsonCount(context.payload, "row", kWhat));
  if (row < request.rows.size()) return static_cast<std::size_t>(row);
  return InvalidArgument(kWhat, ": row ", row, " is not in the manifest");
}

}  // namespace patchbay::workers
