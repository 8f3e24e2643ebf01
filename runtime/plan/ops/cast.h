// cast: rounds the values to a type, to nearest with ties to even. The type of the finished patch
// is batch.dtype.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/base/json.h"
#include "runtime/config/key_table.h"

namespace patchbay::plan {

struct CastOptions {
  DType dtype = DType::kFloat32;  ///< uint8, float16, bfloat16 or float32

  static config::Key Keys();
  /// From a value that passed Keys().
  static CastOptions FromJson(const Json& options);
};

}  // namespace patchbay::plan
