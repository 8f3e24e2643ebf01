#include "runtime/model/positions/cell_set.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>

#include "runtime/core/strings.h"
#include "runtime/model/positions/varint.h"

namespace patchbay::plan {
namespace {

auto RowOf(const CellRun& run) { return std::tie(run.z, run.y); }
auto StartOf(const CellRun& run) { return std::tie(run.z, run.y, run.x); }
std::uint64_t EndOf(const CellRun& run) { return std::uint64_t{run.x} + run.count; }

Status MalformedCells(std::string_view cause) { return InvalidArgument("read cells: ", cause); }

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

std::int64_t CellSet::CentresAlong(std::int64_t pixels) const {
  const std::int64_t before = CentreOf(0, step_);
  return pixels <= before ? 0 : (pixels - before - 1) / step_ + 1;
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

/// Appends the runs at the front of `text`, up to `most` of the set, while each is in the plane of
/// the last one and of single bytes, as nearly all are. Any other, and any fault, it leaves there.
void CellSet::TakeShortRuns(std::string_view& text, std::size_t most, const Extent& inside) {
  const CellRun last = runs_.empty() ? CellRun{} : runs_.back();
  std::uint64_t y = last.y, end = EndOf(last), cells = size();
  std::size_t at = 0;
  for (; runs_.size() < most && text.size() - at >= 4; at += 4) {
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), text.data() + at, bytes.size());
    const auto [z, down, along, count] = bytes;
    const bool is_short = z == 0 && ((down | along | count) & 0x80) == 0;
    if (!is_short || count == 0 || (down | along) == 0) break;
    const std::uint64_t x = along + (down == 0 ? end : 0);
    y += down;
    end = x + count;
    if (y >= static_cast<std::uint64_t>(inside.y) || end > static_cast<std::uint64_t>(inside.x)) {
      break;
    }
    cells += count;
    ends_.push_back(cells);
    // In its place: a run that is built elsewhere and moved waits for its four stores.
    runs_.emplace_back(last.z, static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(x), count);
  }
  text.remove_prefix(at);
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
  const Extent inside{size.z, set.CentresAlong(size.y), set.CentresAlong(size.x)};
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t before = set.runs_.size();
    set.TakeShortRuns(text, before + (count - i), inside);
    i += set.runs_.size() - before;
    if (i == count) break;
    std::uint64_t z = 0, y = 0, x = 0, cells = 0;
    const bool whole = TakeVarint(text, kMost, z) && TakeVarint(text, kMost, y) &&
                       TakeVarint(text, kMost, x) && TakeVarint(text, kMost, cells);
    if (!whole) return MalformedCells("cut short");
    CellRun last = set.runs_.empty() ? CellRun{} : set.runs_.back();
    if (z != 0) last = {static_cast<std::uint32_t>(last.z + z), 0, 0, 0};
    x += y == 0 ? EndOf(last) : 0;
    if (last.y + y > kMost || x > kMost) return MalformedCells("a run past the end of a row");
    last = {last.z, static_cast<std::uint32_t>(last.y + y), static_cast<std::uint32_t>(x),
            static_cast<std::uint32_t>(cells)};
    PB_RETURN_IF_ERROR(set.Append(last));
    const Point end{last.z, last.y, static_cast<std::int64_t>(EndOf(last)) - 1};
    if (!end.Inside(inside)) return MalformedCells("a cell outside the image");
  }
  return set;
}

}  // namespace patchbay::plan
