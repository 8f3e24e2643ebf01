// Where a config has an op: what messages of later checks name.
#pragma once

#include <string>
#include <string_view>

#include "runtime/format/json/json.h"

namespace patchbay::plan {

/// The first step of both lists ([{op: {...}}]) that is `op`: "preprocess[0].stain_normalize";
/// empty when there is none.
std::string KeyOfOp(const Json& preprocess, const Json& augment, std::string_view op);

}  // namespace patchbay::plan
