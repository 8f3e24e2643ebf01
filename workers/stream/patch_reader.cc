#include "workers/stream/patch_reader.h"

namespace patchbay::workers {

Status ReadPatch(const std::shared_ptr<ShardJob>& job, std::uint32_t index, FetchedPatch& out) {
  out.job = job;
  out.index = index;
  out.image = nullptr;
  StreamContext& context = job->context();
  const protocol::ShardLease& lease = job->lease();
  PB_ASSIGN_OR_RETURN(out.spec,
                      context.plan().DeriveSpec(lease.shard.epoch, lease.first_ordinal + index));
  if (out.spec.pad) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(out.image, context.Image(out.spec.image));
  const Box box = context.chain().SourceBox(out.spec.box);
  return Annotate(out.image->Fetch(out.spec.level, box, out.encoded),
                  StrCat("image ", out.spec.image));
}

}  // namespace patchbay::workers
