#include "runtime/model/ops/op_key.h"

#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::plan {

std::string KeyOfOp(const Json& preprocess, const Json& augment, std::string_view op) {
  for (const auto& [name, list] : {std::pair{"preprocess", &preprocess}, {"augment", &augment}}) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i].contains(op)) return StrCat(name, "[", i, "].", op);
    }
  }
  return "";
}

}  // namespace patchbay::plan
