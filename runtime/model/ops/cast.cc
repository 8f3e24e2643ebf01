#include "runtime/model/ops/cast.h"

#include <string>

namespace patchbay::plan {

config::Key CastOptions::Keys() {
  return {.name = "cast",
          .type = config::KeyType::kMap,
          .help = "rounds the values to a type, after every other op",
          .members = {{.name = "dtype",
                       .type = config::KeyType::kChoice,
                       .required = true,
                       .choices = {"uint8", "float16", "bfloat16", "float32"},
                       .help = "type to round to; the patch's own type is batch.dtype"}}};
}

CastOptions CastOptions::FromJson(const Json& options) {
  return {*DTypeFromName(options["dtype"].get_ref<const std::string&>())};
}

}  // namespace patchbay::plan
