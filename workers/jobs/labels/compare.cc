// The pixels of every pair of classes in every two of a store's label sets.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/zarr/label_writer.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/results/label_agreement.h"
#include "workers/jobs/labels/labels.h"
#include "workers/jobs/labels/opened_labels.h"
#include "workers/jobs/labels/readers.h"
#include "workers/jobs/task/task.h"

namespace patchbay::workers {
namespace {

constexpr std::string_view kCompareLabels = "compare labels";
constexpr std::size_t kValues = 256;
/// Pixels of each pair of values.
using Table = std::vector<std::uint64_t>;

/// Equal neighbours are counted eight at a time: labels are areas.
void CountPairs(const std::uint8_t* a, const std::uint8_t* b, std::size_t pixels, Table& table) {
  constexpr std::size_t kAtOnce = 8;
  constexpr std::uint64_t kEach = 0x0101010101010101u;
  std::size_t i = 0;
  for (; i + kAtOnce <= pixels; i += kAtOnce) {
    std::uint64_t of_a = 0, of_b = 0;
    std::memcpy(&of_a, a + i, kAtOnce);
    std::memcpy(&of_b, b + i, kAtOnce);
    if (of_a == a[i] * kEach && of_b == b[i] * kEach) {
      table[a[i] * kValues + b[i]] += kAtOnce;
      continue;
    }
    for (std::size_t k = i; k < i + kAtOnce; ++k) ++table[a[k] * kValues + b[k]];
  }
  for (; i < pixels; ++i) ++table[a[i] * kValues + b[i]];
}

struct ComparedSet {
  LabelRowReader reader;
  std::map<std::string, std::size_t> values;  ///< values of its classes, by name
};

/// Names of the classes of all sets, in the order of their values.
std::vector<std::string> AllClasses(const std::vector<ComparedSet>& sets) {
  std::vector<std::pair<std::size_t, std::string>> all;
  std::set<std::string> seen;
  for (const ComparedSet& set : sets) {
    for (const auto& [name, value] : set.values) {
      if (seen.insert(name).second) all.emplace_back(value, name);
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<std::string> names;
  for (auto& [value, name] : all) names.push_back(std::move(name));
  return names;
}

/// The place of each value's class among `classes`; kValues where it has none.
std::vector<std::size_t> PlacesOf(const ComparedSet& set, const std::vector<std::string>& classes) {
  std::vector<std::size_t> places(kValues, kValues);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto found = set.values.find(classes[i]);
    if (found != set.values.end()) places[found->second] = i;
  }
  return places;
}

results::PairCounts CountsOf(const Table& table, const std::vector<std::size_t>& of_a,
                             const std::vector<std::size_t>& of_b, std::size_t classes) {
  results::PairCounts counts;
  counts.pixels.resize(classes * classes);
  for (std::size_t a = 0; a < kValues; ++a) {
    for (std::size_t b = 0; b < kValues; ++b) {
      const std::uint64_t pixels = table[a * kValues + b];
      const bool has_a = of_a[a] < classes, has_b = of_b[b] < classes;
      if (has_a && has_b) counts.pixels[of_a[a] * classes + of_b[b]] += pixels;
      if (has_a && !has_b) counts.only_a += pixels;
      if (has_b && !has_a) counts.only_b += pixels;
    }
  }
  return counts;
}

StatusOr<ComparedSet> OpenSet(TaskContext& context, const std::string& name, int level,
                              Extent& size) {
  PB_ASSIGN_OR_RETURN(const OpenedLabels labels, OpenLabels(context, name));
  PB_RETURN_IF_ERROR(CheckFlat(labels.image, kCompareLabels));
  const std::vector<Extent>& levels = labels.image.levels;
  if (static_cast<std::size_t>(level) >= levels.size()) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, kCompareLabels, labels.image.store,
                      StrCat("--level ", level, ": its levels are 0 to ", levels.size() - 1));
  }
  size = levels[static_cast<std::size_t>(level)];
  PB_ASSIGN_OR_RETURN(LabelRowReader reader,
                      LabelRowReader::Open(context.allowed, labels, level, ProgressOf(context)));
  ComparedSet set{std::move(reader), {}};
  for (const plan::LabelClass& one : labels.classes.classes) {
    if (one.value != plan::kIgnoreClass) {
      set.values[one.name] = static_cast<std::size_t>(one.value);
    }
  }
  return set;
}

}  // namespace

StatusOr<TaskOutput> RunLabelsCompare(TaskContext& context) {
  PB_ASSIGN_OR_RETURN(const auto options,
                      ReadPayload<LabelsCompareOptions>(context.payload, kCompareLabels, {"sets"}));
  PB_ASSIGN_OR_RETURN(const auto names, ReadersOf(context.payload, kCompareLabels));
  std::vector<ComparedSet> sets;
  Extent size;
  for (const std::string& name : names) {
    PB_ASSIGN_OR_RETURN(ComparedSet set,
                        OpenSet(context, name, static_cast<int>(options.level), size));
    sets.push_back(std::move(set));
  }
  std::vector<Table> tables(sets.size() * sets.size());
  const std::int64_t side = zarr::LabelSettings().chunk.x;
  std::vector<const std::uint8_t*> rows(sets.size());
  for (std::int64_t y = 0; y < size.y; y += side) {
    const std::int64_t height = std::min(side, size.y - y);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      PB_ASSIGN_OR_RETURN(rows[i], sets[i].reader.Read(y, height));
    }
    for (std::size_t a = 0; a < sets.size(); ++a) {
      for (std::size_t b = a + 1; b < sets.size(); ++b) {
        Table& table = tables[a * sets.size() + b];
        table.resize(kValues * kValues);
        CountPairs(rows[a], rows[b], static_cast<std::size_t>(height * size.x), table);
      }
    }
    PB_RETURN_IF_ERROR(StepOf(context));
  }
  results::StoreAgreement found{AllClasses(sets), {}};
  for (std::size_t a = 0; a < sets.size(); ++a) {
    for (std::size_t b = a + 1; b < sets.size(); ++b) {
      results::PairCounts& pair = found.pairs.emplace_back(
          CountsOf(tables[a * sets.size() + b], PlacesOf(sets[a], found.classes),
                   PlacesOf(sets[b], found.classes), found.classes.size()));
      pair.a = a, pair.b = b;
    }
  }
  TaskOutput output;
  output.result = DumpJson(JsonOf(found));
  return output;
}

}  // namespace patchbay::workers
