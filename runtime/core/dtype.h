// Element types of tensors and stores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace patchbay {

/// Real numbers as stores hold them; a kBool takes a byte.
enum class DType : std::uint8_t {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
};

/// Axes of a finished patch in memory: channels first, or last (n: the patches of a batch).
enum class PatchLayout : std::uint8_t { kNchw, kNhwc };

/// Bytes of one element.
std::size_t SizeOf(DType dtype);

/// The name used in configs, Zarr v3 and `--json`: "uint8", "float16", "bfloat16", ...
std::string_view NameOf(DType dtype);

/// The type of that name, or nullopt.
std::optional<DType> DTypeFromName(std::string_view name);

}  // namespace patchbay
