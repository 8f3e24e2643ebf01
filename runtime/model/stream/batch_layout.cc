#include "runtime/model/stream/batch_layout.h"

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/core/strings.h"
#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

constexpr std::string_view kWhat = "batch layout";

std::string_view NameOf(ArrayMemory memory) {
  return memory == ArrayMemory::kStream ? "stream" : "host";
}

std::optional<ArrayMemory> ArrayMemoryFromName(std::string_view name) {
  for (const ArrayMemory memory : {ArrayMemory::kStream, ArrayMemory::kHost}) {
    if (NameOf(memory) == name) return memory;
  }
  return std::nullopt;
}

Status Bad(std::size_t array, std::string_view cause) {
  return absl::InvalidArgumentError(StrCat("read batch layout: array ", array, ": ", cause));
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxArrayNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

Status CheckArray(const ArrayLayout& array, std::size_t index) {
  if (!IsName(array.name)) return Bad(index, "its name is not of a-z, 0-9 and _, or too long");
  if (array.shape.size() > kMaxPatchAxes) return Bad(index, "it has too many axes");
  std::uint64_t bytes = SizeOf(array.dtype);
  for (const std::int64_t side : array.shape) {
    if (side < 1 || static_cast<std::uint64_t>(side) > kMaxSlotBytes / bytes) {
      return Bad(index, StrCat("a patch of ", array.name, " is empty or too large"));
    }
    bytes *= static_cast<std::uint64_t>(side);
  }
  return absl::OkStatus();
}

StatusOr<ArrayLayout> ArrayFromJson(const Json& value, std::size_t index) {
  ArrayLayout array;
  PB_ASSIGN_OR_RETURN(array.name, JsonString(value, "name", kWhat));
  PB_ASSIGN_OR_RETURN(const std::string dtype_name, JsonString(value, "dtype", kWhat));
  const std::optional<DType> dtype = DTypeFromName(dtype_name);
  if (!dtype) return Bad(index, StrCat("unknown dtype ", dtype_name));
  array.dtype = *dtype;
  PB_ASSIGN_OR_RETURN(const Json* shape, JsonMember(value, "shape", kWhat));
  if (!shape->is_array() || shape->size() > kMaxPatchAxes)
    return Bad(index, "shape: no short list");
  for (const Json& side : *shape) {
    array.shape.push_back(side.is_number_integer() ? side.get<std::int64_t>() : 0);
  }
  PB_ASSIGN_OR_RETURN(const std::string memory_name, JsonString(value, "memory", kWhat));
  const std::optional<ArrayMemory> memory = ArrayMemoryFromName(memory_name);
  if (!memory) return Bad(index, StrCat("unknown memory ", memory_name));
  array.memory = *memory;
  return array;
}

}  // namespace

std::uint64_t ArrayLayout::PatchBytes() const {
  std::uint64_t bytes = SizeOf(dtype);
  for (const std::int64_t side : shape) bytes *= static_cast<std::uint64_t>(side);
  return bytes;
}

std::uint64_t BatchLayout::PatchBytes() const {
  std::uint64_t bytes = 0;
  for (const ArrayLayout& array : arrays) bytes += array.PatchBytes();
  return bytes;
}

Digest BatchLayout::ToDigest() const { return Sha256Of(DumpJson(ToJson(*this))); }

Status CheckLayout(const BatchLayout& layout) {
  if (layout.arrays.empty() || layout.arrays.size() > kMaxArrays) {
    return absl::InvalidArgumentError(
        StrCat("read batch layout: ", layout.arrays.size(), " arrays: not in 1..", kMaxArrays));
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < layout.arrays.size(); ++i) {
    PB_RETURN_IF_ERROR(CheckArray(layout.arrays[i], i));
    if (!names.insert(layout.arrays[i].name).second) {
      return Bad(i, StrCat("duplicate name ", layout.arrays[i].name));
    }
  }
  return absl::OkStatus();
}

Json ToJson(const BatchLayout& layout) {
  Json arrays = Json::array();
  for (const ArrayLayout& array : layout.arrays) {
    arrays.push_back({{"name", array.name},
                      {"dtype", NameOf(array.dtype)},
                      {"shape", array.shape},
                      {"memory", NameOf(array.memory)}});
  }
  return arrays;
}

StatusOr<BatchLayout> BatchLayoutFromJson(const Json& value) {
  if (!value.is_array() || value.size() > kMaxArrays) {
    return absl::InvalidArgumentError("read batch layout: no list, or too long");
  }
  BatchLayout layout;
  for (std::size_t i = 0; i < value.size(); ++i) {
    PB_ASSIGN_OR_RETURN(ArrayLayout array, ArrayFromJson(value[i], i));
    layout.arrays.push_back(std::move(array));
  }
  PB_RETURN_IF_ERROR(CheckLayout(layout));
  return layout;
}

StatusOr<BatchLayout> LayoutOfPlan(std::string_view plan_text) {
  PB_ASSIGN_OR_RETURN(const Json plan, ParseJson(plan_text, "plan"));
  PB_ASSIGN_OR_RETURN(const Json* layout, JsonMember(plan, "layout", "plan"));
  return BatchLayoutFromJson(*layout);
}

std::vector<ArrayLayout> MetaArrays() {
  return {{"ordinal", DType::kInt64, {}, ArrayMemory::kHost},
          {"image_index", DType::kInt32, {}, ArrayMemory::kHost},
          {"level", DType::kInt32, {}, ArrayMemory::kHost},
          {"box", DType::kInt64, {6}, ArrayMemory::kHost}};
}

}  // namespace patchbay
