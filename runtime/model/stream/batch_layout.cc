#include "runtime/model/stream/batch_layout.h"

#include <algorithm>
#include <set>

#include "runtime/core/strings.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/format/json/json_stream.h"
#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

std::string_view NameOf(ArrayMemory memory) {
  return memory == ArrayMemory::kStream ? "stream" : "host";
}

Status Bad(std::size_t array, std::string_view cause) {
  return InvalidArgument("read batch layout: array ", array, ": ", cause);
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxArrayNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
         });
}

Status CheckArray(const ArrayLayout& array, std::size_t index) {
  if (!IsName(array.name))
    return Bad(index, "its name may have a-z, 0-9 and _ only, or is too long");
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

}  // namespace

template <>
struct JsonForm<ArrayMemory> {
  static Json To(ArrayMemory memory) { return std::string(NameOf(memory)); }
  static StatusOr<ArrayMemory> From(const Json& json) {
    for (const ArrayMemory memory : {ArrayMemory::kStream, ArrayMemory::kHost}) {
      if (json == To(memory)) return memory;
    }
    return InvalidArgument("expected stream or host");
  }
};
template <>
struct FieldsOf<ArrayLayout> {
  static constexpr auto List() {
    using T = ArrayLayout;
    return AsFullObject(Field("name", &T::name), Field("dtype", &T::dtype),
                        Field("shape", &T::shape).Counted(0, kMaxPatchAxes),
                        Field("memory", &T::memory));
  }
};

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
    return InvalidArgument("read batch layout: ", layout.arrays.size(), " arrays: not in 1..",
                           kMaxArrays);
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

Json ToJson(const BatchLayout& layout) { return JsonOf(layout.arrays); }

StatusOr<BatchLayout> BatchLayoutFromJson(const Json& value) {
  if (value.size() > kMaxArrays) return InvalidArgument("read batch layout: the list is too long");
  BatchLayout layout;
  PB_RETURN_IF_ERROR(ReadJson(value, JsonPlace("read batch layout"), layout.arrays));
  PB_RETURN_IF_ERROR(CheckLayout(layout));
  return layout;
}

StatusOr<BatchLayout> LayoutOfPlan(std::string_view plan_text) {
  PB_ASSIGN_OR_RETURN(const JsonMembers plan, MembersOfJson(plan_text, "plan"));
  const auto found = plan.find("layout");
  if (found == plan.end()) return InvalidArgument("plan: key 'layout' is missing");
  PB_ASSIGN_OR_RETURN(const Json layout, ParseJson(found->second, "plan"));
  return BatchLayoutFromJson(layout);
}

std::vector<ArrayLayout> MetaArrays() {
  return {{"ordinal", DType::kInt64, {}, ArrayMemory::kHost},
          {"image_index", DType::kInt32, {}, ArrayMemory::kHost},
          {"level", DType::kInt32, {}, ArrayMemory::kHost},
          {"box", DType::kInt64, {6}, ArrayMemory::kHost}};
}

}  // namespace patchbay
