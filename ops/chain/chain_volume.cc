// The chain as one of volumes.
#include <algorithm>
#include <utility>

#include "ops/chain/chain.h"
#include "ops/intensity/cast.h"
#include "runtime/core/strings.h"
#include "runtime/model/ops/volume_chain.h"

namespace patchbay::ops {

Status Chain::CompileVolume(const std::vector<plan::OpStep>& steps, Chain& chain) {
  PB_RETURN_IF_ERROR(CastTarget(chain.options_.dtype).status());
  if (chain.options_.channels != 1) {
    const auto first = std::find_if(steps.begin(), steps.end(), plan::IsVolumeStep);
    const auto& named = first == steps.end() ? steps.begin() : first;
    return plan::WrongOp(
        named == steps.end() ? "patch.spacing" : named->key,
        StrCat("needs images of one channel; these have ", chain.options_.channels,
               chain.options_.patch.z == 1 ? "; of 2-D images patch.size is [y, x]" : ""));
  }
  PB_ASSIGN_OR_RETURN(VolumeProgram program,
                      VolumeProgram::Make(steps, chain.options_.patch, chain.options_.kind));
  chain.volume_ = std::make_shared<const VolumeProgram>(std::move(program));
  chain.loops_ = &LoopsAt(chain.options_.cpu_level);
  return absl::OkStatus();
}

Status Chain::CheckImage(const plan::VolumeFacts& facts) const {
  return is_volume() ? volume_->moves().CheckImage(facts) : absl::OkStatus();
}

void Chain::RunVolume(const ConstTensorView& source, const DrawKey& key,
                      const plan::VolumeFacts& facts, std::span<std::byte> out,
                      std::vector<std::byte>& scratch) const {
  const VolumeGeometry geometry = DrawVolume(key, facts);
  const VolumeIntensity intensity = DrawIntensity(key, facts);
  VolumePassJob job;
  job.source = source;
  job.geometry = &geometry;
  job.intensity = &intensity;
  job.program = volume_.get();
  job.patch = options_.patch;
  job.to = *CastTarget(options_.dtype);
  job.out = out.data();
  RunVolumePass(*loops_, job, scratch);
}

}  // namespace patchbay::ops
