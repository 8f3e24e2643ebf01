#include "workers/stream/patch_reader.h"

namespace patchbay::workers {

Status ReadPatch(const std::shared_ptr<ShardJob>& job, std::uint32_t index, FetchedPatch& out) {
  out.job = job;
  out.index = index;
  out.image = out.labels = nullptr;
  StreamContext& context = job->context();
  const protocol::ShardLease& lease = job->lease();
  PB_ASSIGN_OR_RETURN(out.spec, context.Spec(lease.shard.epoch, lease.first_ordinal + index));
  if (out.spec.pad) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(out.image, context.Image(out.spec.image));
  const Box box = context.chain().SourceBox(out.spec.box);
  const std::string what = StrCat("image ", out.spec.image);
  PB_RETURN_IF_ERROR(Annotate(out.image->Fetch(out.spec.level, box, out.encoded), what));
  if (!context.has_labels()) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(out.labels, context.Labels(out.spec.image));
  return Annotate(out.labels->Fetch(out.spec.level, box, out.encoded_labels), what);
}

}  // namespace patchbay::workers
