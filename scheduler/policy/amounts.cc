#include "scheduler/policy/amounts.h"

#include "runtime/core/strings.h"

namespace patchbay::scheduler {

const char* ResourceKey(std::size_t resource) {
  static constexpr const char* kKeys[kResources] = {"cores", "gpus", "memory"};
  return kKeys[resource];
}

std::string AmountText(std::size_t resource, std::uint64_t amount) {
  if (resource == kCores) return CoresText(amount);
  return resource == kGpus ? StrCat(amount) : MebibytesText(amount);
}

const char* ResourceNoun(std::size_t resource) {
  static constexpr const char* kNouns[kResources] = {"cores", "GPUs", "of memory"};
  return kNouns[resource];
}

std::string CoresText(std::uint64_t millis) {
  return StrCat(millis / 1000, ".", millis % 1000 / 100);
}

std::string MebibytesText(std::uint64_t bytes) {
  return StrCat((bytes >> 20) + (bytes % (1u << 20) != 0 ? 1 : 0), " MiB");
}

std::string NeedText(const protocol::Resources& need) {
  std::string text = StrCat(CoresText(need.cpu_millis), " cores");
  if (need.gpus != 0) text += StrCat(", ", need.gpus, " GPUs");
  if (need.memory_bytes != 0) text += StrCat(", ", MebibytesText(need.memory_bytes));
  return text;
}

}  // namespace patchbay::scheduler
