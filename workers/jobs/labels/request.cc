#include "workers/jobs/labels/request.h"

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/label_options.h"
#include "workers/access/planned_images.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kWhat = "labels payload";

Status CheckRows(const LabelsRequest& request) {
  const std::size_t rows = request.stores.size();
  if (rows == 0 || rows > kMaxLabelRows) {
    return InvalidArgument("labels manifest: ", rows, " rows, expected 1 to ", kMaxLabelRows);
  }
  if (request.tissue) return absl::OkStatus();
  if (request.annotations.size() != rows || request.sites.size() != rows) {
    return InvalidArgument("labels manifest: stores, annotations and sites differ");
  }
  return absl::OkStatus();
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
  PB_ASSIGN_OR_RETURN(request.sites, ManifestPaths(context.payload, "sites"));
  PB_ASSIGN_OR_RETURN(request.annotations, ManifestPaths(context.manifest, "sources"));
  return absl::OkStatus();
}

/// The store that a task of an ingest is for: its name in the job's folder of stores.
Status TakeIngested(const TaskContext& context, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::string store, JsonString(context.payload, "store", kWhat));
  PB_ASSIGN_OR_RETURN(request.slide, JsonCount(context.payload, "slide", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string out, JsonString(context.manifest, "out", "manifest"));
  if (store.empty() || store.front() == '.' || store.find('/') != std::string::npos) {
    return InvalidArgument(kWhat, ": store: not the name of a store");
  }
  request.stores = {StrCat(out, "/", store)};
  return absl::OkStatus();
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
  if (context.payload.contains("store")) {
    PB_RETURN_IF_ERROR(TakeIngested(context, request));
  } else {
    PB_ASSIGN_OR_RETURN(request.stores, ManifestPaths(context.manifest, "images"));
  }
  PB_RETURN_IF_ERROR(CheckRows(request));
  return request;
}

StatusOr<std::size_t> RowOf(const TaskContext& context, const LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(const std::uint64_t row, JsonCount(context.payload, "row", kWhat));
  if (row < request.stores.size()) return static_cast<std::size_t>(row);
  return InvalidArgument(kWhat, ": row ", row, " is not in the manifest");
}

}  // namespace patchbay::workers
