#include "runtime/model/positions/position_index.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

constexpr std::string_view kPositionsMark = "patchbay-positions-1\n";
constexpr std::string_view kReadPositions = "read position index";
constexpr std::size_t kMaxStoredNameBytes = 256;
constexpr std::uint64_t kMaxSide = std::uint64_t{1} << 31;

Status MalformedPositions(std::string_view cause) {
  return InvalidArgument(kReadPositions, ": ", cause);
}

StatusOr<ClassCells> TakeClassCells(std::string_view& text, const Extent& size) {
  ClassCells one;
  PB_RETURN_IF_ERROR(TakeClassName(text, one.value, one.name));
  if (!TakeVarint(text, ~std::uint64_t{0}, one.pixels)) return MalformedPositions("cut short");
  PB_ASSIGN_OR_RETURN(one.cells, CellSet::DecodeFrom(text, size));
  if (one.cells.empty() != (one.pixels == 0)) return MalformedPositions("pixels without cells");
  return one;
}

}  // namespace

void AppendClassName(std::uint8_t value, const std::string& name, std::string& out) {
  AppendVarint(out, value);
  AppendVarint(out, name.size());
  out += name;
}

Status TakeClassName(std::string_view& text, std::uint8_t& value, std::string& name) {
  std::uint64_t number = 0, name_bytes = 0;
  if (!TakeVarint(text, 255, number) || !TakeVarint(text, kMaxStoredNameBytes, name_bytes) ||
      name_bytes > text.size()) {
    return MalformedPositions("a class without a value or a name");
  }
  value = static_cast<std::uint8_t>(number);
  name = std::string(text.substr(0, name_bytes));
  text.remove_prefix(name_bytes);
  return absl::OkStatus();
}

void AppendExtent(const Extent& size, std::string& out) {
  for (const std::int64_t side : {size.z, size.y, size.x}) {
    AppendVarint(out, static_cast<std::uint64_t>(side));
  }
}

StatusOr<Extent> TakeExtent(std::string_view& text) {
  std::uint64_t sides[3] = {};
  for (std::uint64_t& side : sides) {
    if (!TakeVarint(text, kMaxSide, side) || side == 0) {
      return MalformedPositions("the size of the image");
    }
  }
  return Extent{static_cast<std::int64_t>(sides[0]), static_cast<std::int64_t>(sides[1]),
                static_cast<std::int64_t>(sides[2])};
}

const ClassCells* PositionIndex::Find(std::string_view name) const {
  for (const ClassCells& one : classes) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

Status PositionIndex::Merge(const PositionIndex& other) {
  if (size != other.size) {
    return MalformedPositions("indexes of images of different size do not join");
  }
  for (const ClassCells& theirs : other.classes) {
    const auto at = std::lower_bound(
        classes.begin(), classes.end(), theirs,
        [](const ClassCells& a, const ClassCells& b) { return a.value < b.value; });
    if (at == classes.end() || at->value != theirs.value) {
      classes.insert(at, theirs);
      continue;
    }
    if (at->name != theirs.name) return MalformedPositions("one value has two names");
    PB_ASSIGN_OR_RETURN(at->cells, CellSet::Union(at->cells, theirs.cells));
    at->pixels += theirs.pixels;
  }
  return absl::OkStatus();
}

std::size_t PositionIndex::MemoryBytes() const {
  std::size_t bytes = sizeof(PositionIndex);
  for (const ClassCells& one : classes) {
    bytes += sizeof(ClassCells) + one.name.size() + one.cells.MemoryBytes();
  }
  return bytes;
}

std::string EncodePositionIndex(const PositionIndex& index) {
  std::string out(kPositionsMark);
  AppendExtent(index.size, out);
  AppendVarint(out, index.classes.size());
  for (const ClassCells& one : index.classes) {
    AppendClassName(one.value, one.name, out);
    AppendVarint(out, one.pixels);
    one.cells.EncodeTo(out);
  }
  return WithCheck(std::move(out));
}

StatusOr<PositionIndex> DecodePositionIndex(std::string_view text, VouchedBy vouched) {
  PB_ASSIGN_OR_RETURN(
      text, CheckedBody(text, kPositionsMark, kMaxPositionIndexBytes, kReadPositions, vouched));
  PositionIndex index;
  PB_ASSIGN_OR_RETURN(index.size, TakeExtent(text));
  const auto take = [&index](std::string_view& rest) { return TakeClassCells(rest, index.size); };
  PB_ASSIGN_OR_RETURN(index.classes,
                      TakeClasses<ClassCells>(text, kMaxIndexClasses, kReadPositions, take));
  return index;
}

}  // namespace patchbay::plan
