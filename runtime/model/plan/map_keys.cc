#include <string>
#include <string_view>

#include "runtime/core/strings.h"
#include "runtime/model/plan/run_config_keys.h"
#include "runtime/model/stream/batch_layout.h"

namespace patchbay::plan {

using config::Key;
using config::KeyType;
using KeyFault = SamplingFault;

namespace {

/// Results are files of these names.
Status CheckOutputs(const Json& outputs) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (outputs.empty()) return InvalidArgument("name at least one");
  for (const auto& [name, output] : outputs.items()) {
    const bool fits = !name.empty() && name.size() <= kMaxArrayNameBytes &&
                      name.find_first_not_of(kAllowed) == std::string::npos;
    if (fits) continue;
    return InvalidArgument("'", name, "': a name has 1 to ", kMaxArrayNameBytes,
                           " letters, digits and underscores");
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Key> MapKeys() {
  return {{.name = "outputs",
           .type = KeyType::kNamed,
           .help = "for `patchbay map`: the results made of each array that the function returns, "
                   "by its name",
           .members = {{.name = "", .type = KeyType::kOptions}},
           .check = CheckOutputs},
          {.name = "weights",
           .type = KeyType::kStringList,
           .min_items = 1,
           .help = "for `patchbay map`: files that the function's load() is given"}};
}

std::optional<KeyFault> FindMapFault(const Json& value) {
  if (!value.contains("outputs")) {
    if (!value.contains("weights")) return std::nullopt;
    return KeyFault{"weights", "there are no `outputs`"};
  }
  const Json& sampling = value["sampling"];
  if (sampling["positions"] == "random") {
    return KeyFault{"sampling.positions",
                    "a config with `outputs` maps a grid, or the places of a table"};
  }
  if (sampling["order"] != "sequential") {
    return KeyFault{"sampling.order",
                    "a config with `outputs` maps image by image: say `order: sequential`"};
  }
  for (const char* key : {"class_weights", "weight_by", "oversample_foreground"}) {
    if (!sampling.contains(key)) continue;
    return KeyFault{StrCat("sampling.", key), "a config with `outputs` takes every patch once"};
  }
  if (value["batch"]["tail"] != "keep") {
    return KeyFault{"batch.tail", "a config with `outputs` keeps the last batch of every image"};
  }
  if (value["augment"].empty()) return std::nullopt;
  return KeyFault{"augment", "a config with `outputs` maps patches as they are"};
}

}  // namespace patchbay::plan
