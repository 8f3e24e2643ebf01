#include <string>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/plan/run_config_keys.h"

namespace patchbay::plan {

using config::Key;
using config::KeyType;

namespace {

constexpr char kImage[] = "image";

bool HasBags(const Json& batch) { return batch.value("by", "") == kImage; }

}  // namespace

std::vector<Key> BagKeys() {
  return {{.name = "by",
           .type = KeyType::kChoice,
           .fallback = "patch",
           .choices = {"patch", kImage},
           .help = "patches one by one, or bags: `patches` of one image follow one another, drawn "
                   "without replacement, and an epoch has every image once; implies meta"},
          {.name = "patches",
           .type = KeyType::kInt,
           .unit = "patches",
           .min = 1,
           .max = kMaxGlobalBatch,
           .help = "by: image: the patches of a bag, padded where the image has fewer; if omitted, "
                   "per_rank is one bag"}};
}

std::uint32_t BagOf(const Json& batch) {
  return HasBags(batch) ? batch["patches"].get<std::uint32_t>() : 0;
}

std::optional<SamplingFault> FindBagFault(const Json& config) {
  const Json &batch = config["batch"], &sampling = config["sampling"];
  if (!HasBags(batch)) {
    if (!batch.contains("patches")) return std::nullopt;
    return SamplingFault{"batch.patches", "the patches of a bag: needs by: image"};
  }
  if (!batch.contains("patches")) {
    return SamplingFault{"batch.by", "bags need `patches`, the number in a bag"};
  }
  const auto patches = batch["patches"].get<std::uint64_t>();
  for (const char* key : {"global_size", "per_rank"}) {
    if (!batch.contains(key) || batch[key].get<std::uint64_t>() % patches == 0) continue;
    return SamplingFault{StrCat("batch.", key), StrCat(batch[key].get<std::uint64_t>(),
                                                       " patches: not whole bags of ", patches)};
  }
  if (sampling["positions"] == "random") {
    return SamplingFault{"sampling.positions",
                         "a bag takes no patch twice: say grid, or a table of positions"};
  }
  for (const char* key : {"weight_by", "max_per_slide"}) {
    if (!sampling.contains(key)) continue;
    return SamplingFault{StrCat("sampling.", key),
                         "bags take every image once, and batch.patches of it"};
  }
  if (!config.contains("outputs")) return std::nullopt;
  return SamplingFault{"batch.by", "a config with `outputs` maps every patch; bags draw some"};
}

void MergeBatch(const Json& split, Json& batch) {
  // Only one of the two gives the batch size, and bags of another size have another.
  const bool has_size = split.contains("global_size") || split.contains("per_rank");
  if (has_size || split.contains("by") || split.contains("patches")) {
    batch.erase("global_size");
    batch.erase("per_rank");
  }
  if (split.value("by", kImage) != kImage) batch.erase("patches");
  batch.update(split);
}

}  // namespace patchbay::plan
