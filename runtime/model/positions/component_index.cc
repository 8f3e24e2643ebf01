#include "runtime/model/positions/component_index.h"

#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/positions/checked_text.h"
#include "runtime/model/positions/position_index.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kComponentsMark = "patchbay-components-1\n",
                           kReadComponents = "read component index";
constexpr std::uint64_t kNotIndexed = kMaxComponents + 1;

Status MalformedComponents(std::string_view cause) {
  return InvalidArgument(kReadComponents, ": ", cause);
}

StatusOr<ClassComponents> TakeClassComponents(std::string_view& text, const Extent& size) {
  ClassComponents one;
  PB_RETURN_IF_ERROR(TakeClassName(text, one.value, one.name));
  std::uint64_t count = 0;
  if (!TakeVarint(text, kNotIndexed, count)) return MalformedComponents("cut short");
  one.is_indexed = count != kNotIndexed;
  for (std::uint64_t i = 0; one.is_indexed && i < count; ++i) {
    PB_ASSIGN_OR_RETURN(CellSet cells, CellSet::DecodeFrom(text, size));
    if (cells.empty() || cells.step() != 1) {
      return MalformedComponents("a component without voxels");
    }
    one.components.push_back(std::move(cells));
  }
  return one;
}

}  // namespace

const ClassComponents* ComponentIndex::Find(std::string_view name) const {
  for (const ClassComponents& one : classes) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string EncodeComponentIndex(const ComponentIndex& index) {
  std::string out(kComponentsMark);
  AppendExtent(index.size, out);
  AppendVarint(out, index.classes.size());
  for (const ClassComponents& one : index.classes) {
    AppendClassName(one.value, one.name, out);
    AppendVarint(out, one.is_indexed ? one.components.size() : kNotIndexed);
    for (const CellSet& cells : one.components) cells.EncodeTo(out);
  }
  return WithCheck(std::move(out));
}

StatusOr<ComponentIndex> DecodeComponentIndex(std::string_view text) {
  PB_ASSIGN_OR_RETURN(text,
                      CheckedBody(text, kComponentsMark, kMaxComponentIndexBytes, kReadComponents));
  ComponentIndex index;
  PB_ASSIGN_OR_RETURN(index.size, TakeExtent(text));
  PB_ASSIGN_OR_RETURN(index.classes,
                      TakeClasses<ClassComponents>(text, kMaxIndexClasses, kReadComponents,
                                                   [&index](std::string_view& rest) {
                                                     return TakeClassComponents(rest, index.size);
                                                   }));
  return index;
}

}  // namespace patchbay::plan
