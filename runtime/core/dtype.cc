#include "runtime/core/dtype.h"

namespace patchbay {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size_bytes;
};

constexpr DTypeRow kDTypes[] = {
    {DType::kBool, "bool", 1},         {DType::kInt8, "int8", 1},
    {DType::kUint8, "uint8", 1},       {DType::kInt16, "int16", 2},
    {DType::kUint16, "uint16", 2},     {DType::kInt32, "int32", 4},
    {DType::kUint32, "uint32", 4},     {DType::kInt64, "int64", 8},
    {DType::kUint64, "uint64", 8},     {DType::kFloat16, "float16", 2},
    {DType::kBfloat16, "bfloat16", 2}, {DType::kFloat32, "float32", 4},
    {DType::kFloat64, "float64", 8},
};

}  // namespace

std::size_t SizeOf(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].size_bytes; }

std::string_view NameOf(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace patchbay
