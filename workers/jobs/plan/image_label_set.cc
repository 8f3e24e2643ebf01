#include "workers/jobs/plan/image_label_set.h"

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_sets.h"
#include "runtime/format/zarr/store_root.h"
#include "runtime/model/plan/class_table.h"
#include "workers/sources/image_source.h"

namespace patchbay::workers {
namespace {

Status Refuse(const std::string& path, const std::string& set, std::string_view cause) {
  return FileError(absl::StatusCode::kInvalidArgument, "plan stream", path,
                   StrCat("key 'labels.set': '", set, "': ", cause));
}

/// Whether the label image has the image's levels, the planned one among them.
bool Fits(const ImageLayout& labels, const Extent& size) {
  if (labels.dtype != DType::kUint8 || labels.channels != 1) return false;
  for (const LevelLayout& level : labels.levels) {
    if (level.size == size) return true;
  }
  return false;
}

}  // namespace

StatusOr<plan::ImageLabels> LabelSetOf(const Folders& allowed, const std::string& path,
                                       const std::string& set, const LabelRevision& revision,
                                       const plan::PlannedImage& image) {
  if (!zarr::IsStore(path)) {
    return Refuse(path, set,
                  "a slide has no label sets: `patchbay ingest` makes a store of it, "
                  "`patchbay labels import` its sets");
  }
  const StatusOr<zarr::OpenedLabelSet> opened = OpenRevision(allowed, path, set, revision);
  if (!opened.ok()) return Refuse(path, set, MessageOf(opened.status()));
  const StatusOr<std::unique_ptr<ImageSource>> source = OpenImage(allowed, opened->path);
  if (!source.ok()) return Refuse(path, set, MessageOf(source.status()));
  if (!Fits((*source)->layout(), image.size)) {
    return Refuse(path, set, "its label image does not have the image's levels; import it again");
  }
  plan::ImageLabels labels;
  labels.digest = opened->digest;
  const Json classes = opened->attributes.value("classes", Json());
  PB_ASSIGN_OR_RETURN(const plan::ClassTable table,
                      plan::ClassTableFromJson(classes, StrCat("label set ", set)));
  for (const plan::LabelClass& one : table.classes) {
    if (one.value != plan::kIgnoreClass) labels.classes.push_back({one.name, one.value});
  }
  return labels;
}

}  // namespace patchbay::workers
