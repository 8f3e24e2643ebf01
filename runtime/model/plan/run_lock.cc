#include "runtime/model/plan/run_lock.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "runtime/core/other_version.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/json/json_error.h"
#include "runtime/format/json/json_forms.h"
#include "runtime/model/ops/stain_references.h"

namespace patchbay::plan {
namespace {

constexpr int kLockVersion = 1;

/// Adds the columns of the section `sampling` of the config or of a split.
void AddSampled(const RunConfig& config, std::set<std::string>& columns,
                std::set<std::string>& sets) {
  if (config.tissue_fraction) sets.insert(config.tissue_set);
  columns.insert(config.weight_by.begin(), config.weight_by.end());
}

std::string Many(std::string_view sign, std::size_t count, std::string_view what) {
  return StrCat(sign, count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

Digest DigestOfPlaces(std::string_view positions) { return Sha256Of(positions); }

StatusOr<std::vector<std::string>> PositionTablesOf(const RunConfig& config) {
  std::set<std::string> tables;
  const auto add = [&](const RunConfig& one) {
    if (one.positions == Positions::kListed) tables.insert(one.positions_table);
  };
  add(config);
  for (const auto& [name, overrides] : config.splits.items()) {
    PB_ASSIGN_OR_RETURN(const RunConfig split, ForSplit(config, name, true));
    add(split);
  }
  return std::vector<std::string>(tables.begin(), tables.end());
}

bool SumsTraining(const RunConfig& config) {
  const auto normalize = FindStainReferences(config);
  return (normalize && normalize->NeedsCohort()) || config.Find(AwaitsStatistic);
}

Status SettleStatistics(const Json& statistics, OpLists& lists) {
  for (Json* list : {&lists.preprocess, &lists.augment}) {
    for (Json& step : *list) {
      const OpRow* op = lists.ops->Find(step.begin().key());  // null: a function of the user's
      if (op == nullptr || !AwaitsStatistic(*op, *step.begin())) continue;
      PB_ASSIGN_OR_RETURN(const Json* statistic,
                          JsonMember(statistics, op->statistic.name.c_str(), "lock"));
      PB_RETURN_IF_ERROR(op->statistic.settle(*statistic, *step.begin()));
    }
  }
  return absl::OkStatus();
}

StatusOr<LockedKeys> LockedKeysOf(const RunConfig& config) {
  LockedKeys keys;
  std::set<std::string> columns, sets;
  for (const std::string& set : config.labels.Sets()) sets.insert(set);
  const auto normalize = FindStainReferences(config);
  if (normalize && normalize->AsksForTissue()) {
    sets.insert(normalize->tissue);
  } else if (normalize) {
    keys.stain_set = normalize->tissue.empty() ? kTissueOfFits : kNoTissueOfFits;
  }
  AddSampled(config, columns, sets);
  for (const auto& [name, overrides] : config.splits.items()) {
    PB_ASSIGN_OR_RETURN(const RunConfig split, ForSplit(config, name, true));
    AddSampled(split, columns, sets);
    const auto role = RoleOf(config, name);
    if (overrides.contains("role") && SumsTraining(config)) keys.roles[name] = NameOf(*role);
  }
  if (HasTable(config)) {
    columns.insert("patient_id");
    for (const auto& [column, values] : config.where) columns.insert(column);
    if (!config.split_column.empty()) columns.insert(config.split_column);
    if (!config.labels.column.empty()) columns.insert(config.labels.column);
    if (normalize && normalize->IsByScanner()) columns.insert(normalize->scanner_column);
    keys.columns.assign(columns.begin(), columns.end());
  } else {
    keys.dataset = config.dataset;
  }
  keys.where = config.where;
  keys.split_column = config.split_column;
  keys.sets.assign(sets.begin(), sets.end());
  return keys;
}

std::vector<std::string> SetsToLock(const LockedKeys& keys) {
  std::vector<std::string> sets = keys.sets;
  const bool is_listed = std::find(sets.begin(), sets.end(), kTissueOfFits) != sets.end();
  if (keys.stain_set == kTissueOfFits && !is_listed) sets.emplace_back(kTissueOfFits);
  return sets;
}

std::string_view DifferingKey(const LockedKeys& locked, const LockedKeys& now) {
  if (locked.dataset != now.dataset) return "dataset";
  if (locked.where != now.where) return "where";
  if (locked.split_column != now.split_column) return "split_column";
  const bool other_fits = !locked.stain_set.empty() && locked.stain_set != now.stain_set;
  if (locked.sets != now.sets || other_fits) {
    return "labels.set, sampling.tissue.set or stain_normalize.tissue";
  }
  if (locked.roles != now.roles) return "splits (a role)";
  return locked.columns != now.columns
             ? "sampling.weight_by, labels.label.column or stain_normalize.scanner_column"
             : "";
}

std::string LockText(const RunLock& lock) {
  std::string text =
      StrCat("{\n\"version\": ", kLockVersion, ",\n\"keys\": ", DumpJson(JsonOf(lock.keys)),
             ",\n\"statistics\": ", DumpJson(lock.statistics), ",\n\"images\": [");
  for (std::size_t i = 0; i < lock.images.size(); ++i) {
    text += StrCat(i == 0 ? "\n" : ",\n", DumpJson(JsonOf(lock.images[i])));
  }
  return text + "\n]\n}\n";
}

StatusOr<RunLock> ParseRunLock(std::string_view text, std::string_view source) {
  constexpr std::string_view kAdvice = "`patchbay lock --update` writes a new one";
  const auto wrong = [&](std::string_view cause) {
    return InvalidArgument("read lock: ", source, ": ", cause, "; ", kAdvice);
  };
  const StatusOr<Json> value = ParseJson(text, source, kMaxLockBytes);
  if (!value.ok()) return wrong(StrCat(OutcomeOf(value.status()).cause, ", so no lock of a run"));
  const StatusOr<std::int64_t> version = JsonInt(*value, "version", source);
  if (!version.ok()) return wrong("no lock of a run");
  if (*version != kLockVersion) {
    return InvalidArgument("read lock: ", source, ": ",
                           OtherVersion(*version, kLockVersion, kAdvice));
  }
  RunLock lock;
  const auto keys = FromJson<LockedKeys>(value->value("keys", Json()), "keys");
  if (!keys.ok()) return wrong(MessageOf(keys.status()));
  lock.keys = *keys;
  lock.statistics = value->value("statistics", Json());
  const Json& images = value->contains("images") ? (*value)["images"] : Json();
  if (!lock.statistics.is_object() || !images.is_array() || images.empty()) {
    return wrong("no statistics or no images");
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < images.size(); ++i) {
    StatusOr<LockedImage> image = FromJson<LockedImage>(images[i], StrCat("image ", i));
    if (!image.ok()) return wrong(MessageOf(image.status()));
    if (!names.insert(image->Name()).second) {
      return wrong(StrCat("image ", i, ": '", image->Name(), "' is listed twice"));
    }
    lock.images.push_back(*std::move(image));
  }
  return lock;
}

bool LockDifference::Empty() const {
  return added.empty() && removed.empty() && relabelled.empty() && changed.empty() &&
         moved.empty() && placed.empty() && statistics.empty() && key.empty();
}

std::string LockDifference::Summary() const {
  std::vector<std::string> parts;
  if (!key.empty()) parts.push_back(StrCat("another ", key));
  if (!added.empty()) parts.push_back(Many("+", added.size(), "slide"));
  if (!removed.empty()) parts.push_back(Many("-", removed.size(), "slide"));
  if (!relabelled.empty()) parts.push_back(StrCat(relabelled.size(), " relabelled"));
  if (!changed.empty()) parts.push_back(StrCat(changed.size(), " with other pixels"));
  if (!moved.empty()) parts.push_back(StrCat(moved.size(), " with other cells"));
  if (!placed.empty()) parts.push_back(StrCat(placed.size(), " with other positions"));
  if (!statistics.empty()) {
    parts.push_back(StrCat("other statistics (", StrJoin(statistics, ", "), ")"));
  }
  return parts.empty() ? "no difference" : StrJoin(parts, ", ");
}

Json LockDifference::ToJson() const {
  Json json = JsonOf(*this);
  json["summary"] = Summary();
  return json;
}

LockDifference DifferenceOf(const RunLock& before, const RunLock& now) {
  LockDifference found;
  found.key = DifferingKey(before.keys, now.keys);
  std::unordered_map<std::string_view, const LockedImage*> old;
  for (const LockedImage& image : before.images) old[image.Name()] = &image;
  for (const LockedImage& image : now.images) {
    const auto same = old.find(image.Name());
    if (same == old.end()) {
      found.added.push_back(image.Name());
      continue;
    }
    if (same->second->digest != image.digest) found.changed.push_back(image.Name());
    if (same->second->sets != image.sets) found.relabelled.push_back(image.Name());
    if (same->second->cells != image.cells) found.moved.push_back(image.Name());
    if (same->second->places != image.places) found.placed.push_back(image.Name());
    old.erase(same);
  }
  for (const LockedImage& image : before.images) {
    if (old.contains(image.Name())) found.removed.push_back(image.Name());
  }
  std::set<std::string> names;
  for (const Json* all : {&before.statistics, &now.statistics}) {
    for (const auto& [name, value] : all->items()) names.insert(name);
  }
  for (const std::string& name : names) {
    if (before.statistics.value(name, Json()) != now.statistics.value(name, Json())) {
      found.statistics.push_back(name);
    }
  }
  return found;
}

}  // namespace patchbay::plan
