#include "workers/jobs/labels/request.h"

#include <algorithm>

#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/staged/staged_job.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kLabelsPayload = "labels payload";

Status TakeTissue(const Json& payload, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(
      const auto options,
      ReadPayload<LabelsTissueOptions>(payload, kLabelsPayload,
                                       {"row", "slide", "store", "job_key", kTissueOptionsOfRows}));
  request.set = options.set;
  PB_ASSIGN_OR_RETURN(const TissueOptions asked, ParseTissueOptions(options.options));
  PB_ASSIGN_OR_RETURN(const TissueProfile profile, TissueProfileOf(options.profile));
  PB_ASSIGN_OR_RETURN(request.tissue, WithOptions(profile, asked));
  request.classes = TissueClasses();
  return absl::OkStatus();
}

/// The options that a table states for the row.
StatusOr<TissueOptions> OwnOptions(const Json& payload, std::size_t row) {
  const Json stated = payload.value(kTissueOptionsOfRows, Json::object());
  for (const auto& [texts, rows] : stated.items()) {
    for (const Json& one : rows) {
      if (one == row) return ParseTissueOptions(SplitTissueOptions(texts));
    }
  }
  return TissueOptions();
}

Status TakeReaders(const Json& payload, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(const auto options,
                      ReadPayload<LabelsMajorityOptions>(payload, kLabelsPayload, {"row", "sets"}));
  PB_ASSIGN_OR_RETURN(request.readers, ReadersOf(payload, kLabelsPayload));
  request.set = options.set;
  request.votes.first_wins = options.ties == "first";
  request.votes.least_votes = static_cast<std::size_t>(options.min_votes);
  if (request.votes.least_votes > request.readers.size()) {
    return InvalidArgument(kLabelsPayload, ": --min-votes ", options.min_votes, ": there are ",
                           request.readers.size(), " sets");
  }
  const auto& readers = request.readers;
  if (std::find(readers.begin(), readers.end(), request.set) == readers.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument(kLabelsPayload, ": --set ", request.set,
                         ": it is one of the sets that vote");
}

Status TakeAnnotations(const Json& payload, const Json& classes, LabelsRequest& request) {
  PB_ASSIGN_OR_RETURN(request.classes, plan::ClassTableFromJson(classes, "class table"));
  PB_ASSIGN_OR_RETURN(const auto options, ReadPayload<LabelsImportOptions>(payload, kLabelsPayload,
                                                                           {"classes", "row"}));
  request.set = options.set;
  request.dry_run = options.dry_run;
  request.clip = options.clip;
  request.class_from = options.class_from;
  PB_ASSIGN_OR_RETURN(request.origin, OriginOf(options.origin));
  return absl::OkStatus();
}

}  // namespace

StatusOr<LabelsRequest> LabelsRequestOf(const TaskContext& context) {
  PB_ASSIGN_OR_RETURN(auto manifest, FromJson<JobManifest>(context.manifest, "labels manifest"));
  PB_ASSIGN_OR_RETURN(const auto payload, FromJson<LabelsPayload>(context.payload, kLabelsPayload,
                                                                  UnknownKeys::kSkipped));
  LabelsRequest request;
  PB_RETURN_IF_ERROR(!payload.sets.empty() ? TakeReaders(context.payload, request)
                     : payload.classes.is_null()
                         ? TakeTissue(context.payload, request)
                         : TakeAnnotations(context.payload, payload.classes, request));
  if (!zarr::IsSetName(request.set)) {
    return InvalidArgument("import labels: set '", request.set, "': ", zarr::kSetNameRule);
  }
  if (payload.store.find('/') != std::string::npos || payload.store.starts_with('.')) {
    return InvalidArgument(kLabelsPayload, ": store: not the name of a store");
  }
  if (!payload.store.empty()) manifest.label_rows = {{StrCat(manifest.out, "/", payload.store)}};
  request.rows = std::move(manifest.label_rows);
  request.row = payload.row;
  request.slide = payload.slide;
  request.pseudonym_key = std::move(manifest.pseudonym_key);
  if (request.rows.empty() || request.rows.size() > kMaxSlides) {
    return InvalidArgument("labels manifest: ", request.rows.size(), " rows, expected 1 to ",
                           kMaxSlides);
  }
  if (request.row >= request.rows.size()) {
    return InvalidArgument(kLabelsPayload, ": row ", request.row, " is not in the manifest");
  }
  if (request.tissue) {
    PB_ASSIGN_OR_RETURN(const TissueOptions own, OwnOptions(context.payload, request.row));
    PB_ASSIGN_OR_RETURN(request.tissue, WithOptions(*request.tissue, own));
  }
  return request;
}

}  // namespace patchbay::workers
