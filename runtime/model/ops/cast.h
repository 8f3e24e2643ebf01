// cast: rounds the values to a type, to nearest with ties to even. The type of the finished patch
// is batch.dtype.
#pragma once

#include "runtime/core/dtype.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/key_table.h"

namespace patchbay::plan {

struct CastOptions {
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16 or float32

  static config::Key Keys();
  /// From a value that passed Keys().
  static CastOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
