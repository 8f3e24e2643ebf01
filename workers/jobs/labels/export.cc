// Exports a label set: the formats of runtime/model/jobs/label_formats.h with their writers.
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/job_manifest.h"
#include "runtime/model/jobs/label_formats.h"
#include "runtime/model/jobs/label_options.h"
#include "workers/jobs/labels/export_formats.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/opened_labels.h"

namespace patchbay::workers {
namespace {

/// Writes the file, whole or not at all. Result: {"content" (a phrase for people), "bytes", ...}.
using LabelWriter = StatusOr<Json> (*)(TaskContext& context, const OpenedLabels& labels,
                                       const LabelsExportOptions& options, const std::string& path);

struct WriterRow {
  std::string_view format;
  LabelWriter write;
};

constexpr WriterRow kWriters[] = {
    {"geojson", ExportOutlines}, {"tiff", ExportMask},        {"nifti", ExportNifti},
    {"nrrd", ExportNrrd},        {"seg", ExportSegmentation},
};

LabelWriter WriterOf(const LabelFormat& format) {
  for (const WriterRow& row : kWriters) {
    if (row.format == format.name) return row.write;
  }
  return nullptr;
}

Status CheckKind(const LabelFormat& format, const LabelledImage& image) {
  if (image.is_volume ? format.of_volumes : format.of_slides) return absl::OkStatus();
  const Status refused =
      ErrorAbout(absl::StatusCode::kInvalidArgument, "export labels", image.store,
                 StrCat(image.is_volume ? "a volume, and " : "a slide, and ", format.name,
                        " is for ", image.is_volume ? "slides" : "volumes"));
  return WithAdvice(refused, StrCat("export it as ", LabelFormatsOf(image.is_volume)));
}

}  // namespace

StatusOr<TaskOutput> RunLabelsExport(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto manifest,
                      FromJson<JobManifest>(context.manifest, "export labels"));
  PB_ASSIGN_OR_RETURN(const auto options,
                      ReadPayload<LabelsExportOptions>(context.payload, "export labels"));
  const LabelFormat& format = *FindLabelFormat(options.to);
  const LabelWriter write = WriterOf(format);
  PB_CHECK(write != nullptr);
  PB_ASSIGN_OR_RETURN(const std::string path, context.MayWrite(manifest.out));
  PB_ASSIGN_OR_RETURN(const OpenedLabels labels, OpenLabels(context, options.set));
  PB_RETURN_IF_ERROR(CheckKind(format, labels.image));
  PB_ASSIGN_OR_RETURN(Json report, write(context, labels, options, path));
  report["digest"] = labels.set.digest.Hex();
  TaskOutput output;
  output.result = DumpJson(report);
  return output;
}

}  // namespace patchbay::workers
