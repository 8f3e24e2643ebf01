#include "runtime/model/plan/cell_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>

#include "runtime/core/strings.h"
#include "runtime/model/plan/varint.h"

namespace patchbay::plan {
namespace {

auto RowOf(const CellRun& run) { return std::tie(run.z, run.y); }
auto StartOf(const CellRun& run) { return std::tie(run.z, run.y, run.x); }
std::uint64_t EndOf(const CellRun& run) { return std::uint64_t{run.x} + run.count; }

Status MalformedCells(std::string_view cause) { return InvalidArgument("read cells: ", cause); }

/// Takes four varints that are single bytes, as in most runs; false where any is not.
bool TakeBytes(std::string_view& text, std::uint64_t& z, std::uint64_t& y, std::uint64_t& x,
               std::uint64_t& cells) {
  if (text.size() < 4) return false;
  std::array<std::uint8_t, 4> bytes{};
  std::memcpy(bytes.data(), text.data(), bytes.size());
  if (((bytes[0] | bytes[1] | bytes[2] | bytes[3]) & 0x80) != 0) return false;
  z = bytes[0];
  y = bytes[1];
  x = bytes[2];
  cells = bytes[3];
  text.remove_prefix(bytes.size());
  return true;
}

}  // namespace

Status CellSet::Append(const CellRun& run) {
  if (run.count == 0 || EndOf(run) > std::numeric_limits<std::uint32_t>::max()) {
    return MalformedCells("a run without cells, or past the end of a row");
  }
  if (!runs_.empty()) {
    CellRun& last = runs_.back();
    const bool same_row = RowOf(last) == RowOf(run);
    if (RowOf(run) < RowOf(last) || (same_row && run.x < EndOf(last))) {
      return MalformedCells("runs that are not in row order, or overlap");
    }
    if (same_row && run.x == EndOf(last)) {
      last.count += run.count;
      ends_.back() += run.count;
      return absl::OkStatus();
    }
  }
  if (runs_.size() >= kMaxRuns) return MalformedCells(StrCat("more than ", kMaxRuns, " runs"));
  ends_.push_back(size() + run.count);
  runs_.push_back(run);
  return absl::OkStatus();
}

Point CellSet::Cell(std::uint64_t n) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), n);
  const CellRun& run = runs_[static_cast<std::size_t>(end - ends_.begin())];
  return {run.z, run.y, static_cast<std::int64_t>(run.x + run.count - (*end - n))};
}

bool CellSet::Contains(const Point& cell) const {
  if (cell.z < 0 || cell.y < 0 || cell.x < 0) return false;
  const CellRun wanted{static_cast<std::uint32_t>(cell.z), static_cast<std::uint32_t>(cell.y),
                       static_cast<std::uint32_t>(cell.x), 1};
  auto run = std::upper_bound(runs_.begin(), runs_.end(), wanted,
                              [](const auto& a, const auto& b) { return StartOf(a) < StartOf(b); });
  if (run == runs_.begin()) return false;
  --run;
  return RowOf(*run) == RowOf(wanted) && wanted.x < EndOf(*run);
}

Point CellSet::PixelOf(const Point& cell) const {
  const std::int64_t step = step_;
  return {cell.z, cell.y * step + step / 2, cell.x * step + step / 2};
}

StatusOr<CellSet> CellSet::Union(const CellSet& a, const CellSet& b) {
  if (a.step_ != b.step_) {
    return MalformedCells(StrCat("cells of ", a.step_, " pixels do not join those of ", b.step_));
  }
  CellSet both(a.step_);
  auto i = a.runs_.begin(), j = b.runs_.begin();
  CellRun next{};
  const auto flush = [&] { return next.count == 0 ? absl::OkStatus() : both.Append(next); };
  while (i != a.runs_.end() || j != b.runs_.end()) {
    const bool from_a = j == b.runs_.end() || (i != a.runs_.end() && StartOf(*i) <= StartOf(*j));
    const CellRun& run = from_a ? *i++ : *j++;
    if (next.count != 0 && RowOf(next) == RowOf(run) && run.x <= EndOf(next)) {
      next.count = static_cast<std::uint32_t>(std::max(EndOf(next), EndOf(run)) - next.x);
      continue;
    }
    PB_RETURN_IF_ERROR(flush());
    next = run;
  }
  PB_RETURN_IF_ERROR(flush());
  return both;
}

std::size_t CellSet::MemoryBytes() const {
  return runs_.capacity() * sizeof(CellRun) + ends_.capacity() * sizeof(std::uint64_t);
}

/// Every run as the distance from the one before: planes, rows (from 0 in another plane) and cells
/// (from 0 in another row).
void CellSet::EncodeTo(std::string& out) const {
  AppendVarint(out, step_);
  AppendVarint(out, runs_.size());
  CellRun last{};
  for (const CellRun& run : runs_) {
    AppendVarint(out, run.z - last.z);
    if (run.z != last.z) last = {run.z, 0, 0, 0};
    AppendVarint(out, run.y - last.y);
    AppendVarint(out, run.y == last.y ? run.x - EndOf(last) : run.x);
    AppendVarint(out, run.count);
    last = run;
  }
}

StatusOr<CellSet> CellSet::DecodeFrom(std::string_view& text, const Extent& size) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t step = 0, count = 0;
  if (!TakeVarint(text, kMaxStep, step) || !std::has_single_bit(step)) {
    return MalformedCells("the step is not a power of two");
  }
  if (!TakeVarint(text, kMaxRuns, count)) return MalformedCells("too many runs, or cut short");
  CellSet set(static_cast<std::uint32_t>(step));
  // A run takes four bytes or more: no more memory is reserved than the text can fill.
  const std::size_t runs = std::min<std::size_t>(count, text.size() / 4);
  set.runs_.reserve(runs);
  set.ends_.reserve(runs);
  CellRun last{};
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t z = 0, y = 0, x = 0, cells = 0;
    if (!TakeBytes(text, z, y, x, cells)) {
      const bool whole = TakeVarint(text, kMost, z) && TakeVarint(text, kMost, y) &&
                         TakeVarint(text, kMost, x) && TakeVarint(text, kMost, cells);
      if (!whole) return MalformedCells("cut short");
    }
    const bool follows = z == 0 && (y != 0 || x != 0) && cells != 0;  // as all but a few do
    if (z != 0) last = {static_cast<std::uint32_t>(last.z + z), 0, 0, 0};
    x += y == 0 ? EndOf(last) : 0;
    if (last.y + y > kMost || x > kMost) return MalformedCells("a run past the end of a row");
    last = {last.z, static_cast<std::uint32_t>(last.y + y), static_cast<std::uint32_t>(x),
            static_cast<std::uint32_t>(cells)};
    if (follows && x + cells <= kMost) {
      set.ends_.push_back(set.size() + cells);
      set.runs_.push_back(last);
    } else {
      PB_RETURN_IF_ERROR(set.Append(last));
    }
    const Point end = set.PixelOf({last.z, last.y, static_cast<std::int64_t>(EndOf(last)) - 1});
    if (!end.Inside(size)) return MalformedCells("a cell outside the image");
  }
  return set;
}

}  // namespace patchbay::plan
