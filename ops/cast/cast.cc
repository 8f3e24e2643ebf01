#include "ops/cast/cast.h"

#include "runtime/core/strings.h"

namespace patchbay::ops {

StatusOr<CastTo> CastTarget(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return CastTo::kUint8;
    case DType::kFloat16:
      return CastTo::kFloat16;
    case DType::kBfloat16:
      return CastTo::kBfloat16;
    case DType::kFloat32:
      return CastTo::kFloat32;
    default:
      return absl::InvalidArgumentError(
          StrCat("cast: to ", NameOf(dtype), ": expected uint8, float16, bfloat16 or float32"));
  }
}

}  // namespace patchbay::ops
