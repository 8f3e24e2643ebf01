#include "workers/jobs/labels/opened_labels.h"

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_writer.h"
#include "runtime/model/jobs/job_manifest.h"

namespace patchbay::workers {

StatusOr<OpenedLabels> OpenLabels(TaskContext& context, const std::string& set) {
  PB_ASSIGN_OR_RETURN(const auto manifest,
                      FromJson<JobManifest>(context.manifest, "export labels"));
  if (manifest.images.size() != 1) return InvalidArgument("export labels: expected one store");
  PB_ASSIGN_OR_RETURN(const std::string store, context.MayRead(manifest.images[0]));
  OpenedLabels out;
  PB_ASSIGN_OR_RETURN(out.image, OpenLabelledImage(context.allowed, store));
  PB_ASSIGN_OR_RETURN(out.set, zarr::OpenLabelSet(context.allowed, store, set));
  PB_ASSIGN_OR_RETURN(const Json* classes,
                      JsonMember(out.set.attributes, "classes", "export labels"));
  PB_ASSIGN_OR_RETURN(out.classes, plan::ClassTableFromJson(*classes, "export labels"));
  return out;
}

StatusOr<LabelRowReader> LabelRowReader::Open(const Folders& allowed, const OpenedLabels& labels,
                                              int level, AfterPiece after_piece) {
  LabelRowReader reader;
  PB_ASSIGN_OR_RETURN(reader.source_, OpenImage(allowed, labels.set.path));
  const ImageLayout& layout = reader.source_->layout();
  const auto index = static_cast<std::size_t>(level);
  const Extent size = labels.image.levels[index];
  if (layout.channels != 1 || layout.dtype != DType::kUint8 || index >= layout.levels.size() ||
      layout.levels[index].size != size) {
    return ErrorAbout(absl::StatusCode::kDataLoss, "export labels", labels.set.path,
                      "it does not match its image");
  }
  reader.scratch_ = reader.source_->MakeScratch();
  reader.level_ = level;
  reader.width_ = size.x;
  reader.fetched_.after_piece = std::move(after_piece);
  return reader;
}

StatusOr<const std::uint8_t*> LabelRowReader::Read(std::int64_t y, std::int64_t height) {
  PB_RETURN_IF_ERROR(source_->Fetch(level_, Box2D(y, 0, height, width_), fetched_));
  rows_.resize(static_cast<std::size_t>(height * width_));
  const TensorView view =
      ContiguousView<3>(rows_.data(), DType::kUint8, {height, width_, std::int64_t{1}});
  PB_RETURN_IF_ERROR(source_->Decode(fetched_, view, zarr::kIgnoreLabel, *scratch_));
  return reinterpret_cast<const std::uint8_t*>(rows_.data());
}

}  // namespace patchbay::workers
