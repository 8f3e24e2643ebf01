#include "runtime/memory/gpu_advice.h"

#include "runtime/core/strings.h"

namespace patchbay::memory {
namespace {

std::string VersionText(int version) { return StrCat(version / 1000, ".", version % 1000 / 10); }

}  // namespace

std::string WhyNoGpus(int driver_version, int runtime_version) {
  if (driver_version == 0) {
    return "no NVIDIA driver: install one, or give the container the GPUs (nvidia-smi must list "
           "them)";
  }
  if (driver_version < runtime_version) {
    return StrCat("the NVIDIA driver is too old: it is of CUDA ", VersionText(driver_version),
                  ", and this program needs ", VersionText(runtime_version),
                  ": install a newer driver");
  }
  return "the NVIDIA driver shows no GPU: see nvidia-smi, and CUDA_VISIBLE_DEVICES if it is set";
}

std::string LimitOf(const GpuDescription& gpu) {
  const std::string set_default = StrCat("set it to default (nvidia-smi -i ", gpu.uuid, " -c 0)");
  if (gpu.sharing == GpuSharing::kProhibited) {
    return StrCat("compute mode prohibited: no process may use the GPU: ", set_default);
  }
  if (gpu.sharing == GpuSharing::kExclusive) {
    return StrCat("compute mode exclusive: a worker and a trainer cannot share the GPU: ",
                  set_default, ", or leave it to the trainer (--gpus none)");
  }
  if (gpu.is_mig_slice) {
    return "a MIG slice, one a process: start a node for each slice "
           "(CUDA_VISIBLE_DEVICES=MIG-...), "
           "and a trainer with slots on it on the same slice";
  }
  return "";
}

std::string WhyNoRoom(int gpu, std::uint64_t wanted_bytes) {
  const StatusOr<GpuMemory> room = MemoryOf(gpu);
  const std::string found = room.ok() ? StrCat(", of which ", HumanBytes(room->free_bytes), " of ",
                                               HumanBytes(room->total_bytes), " are free")
                                      : "";
  return StrCat(HumanBytes(wanted_bytes), " do not fit GPU ", gpu, found);
}

}  // namespace patchbay::memory
