#include "workers/stream/patch_reader.h"

#include "workers/sources/channel_choice.h"

namespace patchbay::workers {

std::size_t FetchedPatch::BufferBytes() const {
  std::size_t bytes = 0;
  for (const FetchedLabels& set : labels) bytes += set.encoded.bytes.capacity();
  for (const FetchedView& view : views) bytes += view.encoded.bytes.capacity();
  return bytes;
}

void FetchedPatch::FreeBuffers() {
  views.clear();
  labels.clear();
}

void FetchedPatch::CloseImages() {
  image = nullptr;
  for (FetchedLabels& set : labels) set.source = nullptr;
}

Status ReadPatch(const std::shared_ptr<ShardWork>& work, std::uint32_t index,
                 const AfterPiece& after_piece, FetchedPatch& out) {
  out.work = work;
  out.index = index;
  out.CloseImages();
  StreamContext& context = work->context();
  const protocol::ShardLease& lease = work->lease();
  PB_ASSIGN_OR_RETURN(out.spec, context.Spec(lease.shard.epoch, lease.first_ordinal + index));
  if (out.spec.pad) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(out.image, context.Image(out.spec.image, after_piece));
  PB_RETURN_IF_ERROR(after_piece());
  const Subject image{SubjectKind::kImage, out.spec.image, ""};
  const auto channels = ChooseChannels(context.plan().config().channels, out.image->layout());
  if (!channels.ok()) return About(channels.status(), "", image);
  out.views.resize(context.plan().views());
  for (std::size_t i = 0; i < out.views.size(); ++i) {
    FetchedView& view = out.views[i];
    view.window = WindowOf(context.plan(), context.chain(), out.spec, i);
    view.encoded.after_piece = after_piece;
    view.encoded.channels = *channels;
    PB_RETURN_IF_ERROR(
        About(out.image->Fetch(view.window.level, view.window.box, view.encoded), "", image));
  }
  out.labels.resize(context.label_sets());
  const ViewWindow& window = out.views.front().window;
  for (std::size_t i = 0; i < out.labels.size(); ++i) {
    FetchedLabels& set = out.labels[i];
    PB_ASSIGN_OR_RETURN(set.source, context.Labels(out.spec.image, i));
    PB_RETURN_IF_ERROR(after_piece());
    set.encoded.after_piece = after_piece;
    PB_RETURN_IF_ERROR(About(set.source->Fetch(window.level, window.box, set.encoded), "", image));
  }
  return absl::OkStatus();
}

}  // namespace patchbay::workers
