#include "runtime/model/plan/labels_config.h"

#include <algorithm>
#include <utility>

#include "runtime/core/names.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/class_table.h"

namespace patchbay::plan {
namespace {

using config::Key;
using config::KeyType;

constexpr std::size_t kMaxSetBytes = 64;
constexpr std::string_view kMask = "mask";
constexpr auto kRules = NamesInOrder<LabelRule>("majority", "any", "center");

Status CheckSets(const Json& labels) {
  const auto sets = labels["set"].get<std::vector<std::string>>();
  for (auto set = sets.begin(); set != sets.end(); ++set) {
    if (set->empty()) return InvalidArgument("set: a name is empty");
    if (set->size() > kMaxSetBytes) return InvalidArgument("set: a name of more than 64 bytes");
    if (std::find(sets.begin(), set, *set) != set) {
      return InvalidArgument("set: '", *set, "' is named twice");
    }
  }
  if (sets.size() == 1 || labels.value("mask", false)) return absl::OkStatus();
  return InvalidArgument("set: '", sets[1],
                         "' is read for a mask alone, and there is none: mask: true adds them; "
                         "classes are those of the first set, '",
                         sets[0], "'");
}

Status CheckKeys(const Json& labels) {
  const Json label = labels.value("label", Json::object());
  const bool has_rule = label.contains("rule");
  const char* given = nullptr;
  for (const char* key : {"rule", "column", "positions_column"}) {
    if (!label.contains(key)) continue;
    if (given != nullptr) {
      return InvalidArgument("label.", given, " and label.", key, " exclude each other");
    }
    given = key;
  }
  if (!labels.contains("set")) {
    if (!labels.value("mask", false) && !has_rule) return absl::OkStatus();
    return InvalidArgument("set: name the label set to read");
  }
  PB_RETURN_IF_ERROR(CheckSets(labels));
  const bool has_classes = !label.value("classes", Json::array()).empty();
  if (has_classes && label.value("rule", "") != "any") {
    return InvalidArgument("label.classes: needs rule: any");
  }
  if (label.value("min_fraction", 0.0) > 0 && (!has_rule || label["rule"] == "center")) {
    return InvalidArgument("label.min_fraction: needs rule: majority or any");
  }
  return absl::OkStatus();
}

Key LabelKey() {
  return {.name = "label",
          .type = KeyType::kMap,
          .help = "the array label: one class per patch, 255 where there is none",
          .members = {{.name = "rule",
                       .type = KeyType::kChoice,
                       .choices = {kRules.list.begin(), kRules.list.end()},
                       .help = "the commonest class of the pixels that are not ignored, the first "
                               "class of the table that occurs, or the class of the centre pixel"},
                      {.name = "min_fraction",
                       .type = KeyType::kFloat,
                       .fallback = 0.0,
                       .min = 0,
                       .max = 1,
                       .help = "majority: part of the patch that must not be ignored; any: part "
                               "that a class must cover to count"},
                      {.name = "classes",
                       .type = KeyType::kStringList,
                       .fallback = Json::array(),
                       .max_items = kMaxClasses,
                       .help = "any: only these classes count (if omitted: all)"},
                      {.name = "column",
                       .type = KeyType::kString,
                       .help = "instead of a rule: the column of the table with each image's "
                               "class, an integer; an empty cell is 255"},
                      {.name = "positions_column",
                       .type = KeyType::kString,
                       .help = "instead of a rule: the column of the table of positions with each "
                               "patch's class, a whole number; an empty cell is 255"}}};
}

}  // namespace

std::string_view NameOf(LabelRule rule) { return kRules.Of(rule); }

std::vector<std::string> LabelsConfig::Sets() const {
  std::vector<std::string> sets;
  if (!set.empty()) sets.push_back(set);
  sets.insert(sets.end(), further_sets.begin(), further_sets.end());
  return sets;
}

std::string MaskArrayOf(std::size_t set) {
  return set == 0 ? std::string(kMask) : StrCat(kMask, "_", set);
}

std::optional<std::size_t> SetOfMaskArray(std::string_view array) {
  if (!array.starts_with(kMask)) return std::nullopt;
  for (std::size_t set = 0; set < kMaxLabelSets; ++set) {
    if (array == MaskArrayOf(set)) return set;
  }
  return std::nullopt;
}

Key LabelsKey() {
  return {.name = "labels",
          .type = KeyType::kMap,
          .help = "arrays from label sets of the stores (patchbay labels import)",
          .members = {{.name = "set",
                       .type = KeyType::kStringList,
                       .min_items = 1,
                       .max_items = kMaxLabelSets,
                       .help = "the label set, or several; every image needs all of them. Classes "
                               "of sampling and labels.label are those of the first one"},
                      {.name = "mask",
                       .type = KeyType::kBool,
                       .fallback = false,
                       .help = "adds the array mask, and mask_1, mask_2, ... of further sets: the "
                               "class of every pixel, uint8, 255 = ignore, from the same geometry "
                               "as the image"},
                      LabelKey()},
          .check = CheckKeys};
}

LabelsConfig LabelsConfigOf(const Json& labels) {
  LabelsConfig out;
  if (labels.contains("set")) {
    out.further_sets = labels["set"].get<std::vector<std::string>>();
    out.set = std::move(out.further_sets.front());
    out.further_sets.erase(out.further_sets.begin());
  }
  out.mask = labels.value("mask", false);
  const Json label = labels.value("label", Json::object());
  if (label.contains("rule")) out.rule = kRules.Find(label["rule"].get_ref<const std::string&>());
  out.min_fraction = label.value("min_fraction", 0.0);
  out.classes = label.value("classes", std::vector<std::string>());
  out.column = label.value("column", "");
  out.positions_column = label.value("positions_column", "");
  return out;
}

Json ToJson(const LabelsConfig& labels) {
  if (labels.set.empty() && !labels.HasLabel()) return nullptr;
  Json label = {{"min_fraction", labels.min_fraction}, {"classes", labels.classes}};
  if (labels.rule) label["rule"] = NameOf(*labels.rule);
  if (!labels.column.empty()) label["column"] = labels.column;
  if (!labels.positions_column.empty()) label["positions_column"] = labels.positions_column;
  Json value = {{"mask", labels.mask}, {"label", label}};
  if (!labels.set.empty()) value["set"] = labels.set;
  if (!labels.further_sets.empty()) value["set"] = labels.Sets();
  return value;
}

Status CheckClass(std::string_view key, const std::string& name, const std::string& set,
                  const LabelClasses& classes) {
  std::vector<std::string> names;
  for (const NamedValue& one : classes) names.push_back(one.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  const std::string nearest = Nearest(name, names);
  return InvalidArgument("key '", key, "': '", name, "' is not a class of the set ", set,
                         nearest.empty() ? StrCat(" (it has ", StrJoin(names, ", "), ")")
                                         : StrCat(": did you mean '", nearest, "'?"));
}

Status CheckLabels(const LabelsConfig& labels, const LabelClasses& classes) {
  for (const std::string& name : labels.classes) {
    PB_RETURN_IF_ERROR(CheckClass("labels.label.classes", name, labels.set, classes));
  }
  return absl::OkStatus();
}

int ClassOfPatch(const LabelsConfig& labels, const LabelClasses& classes,
                 const std::array<std::uint32_t, 256>& pixels) {
  std::uint64_t all = 0;
  for (const std::uint32_t count : pixels) all += count;
  const double needed = labels.min_fraction * static_cast<double>(all);
  if (labels.rule == LabelRule::kMajority) {
    const auto best = std::max_element(pixels.begin(), pixels.end() - 1);
    const std::uint64_t seen = all - pixels[kIgnoreClass];
    const bool is_enough = *best > 0 && static_cast<double>(seen) >= needed;
    return is_enough ? static_cast<int>(best - pixels.begin()) : kIgnoreClass;
  }
  for (const NamedValue& one : classes) {
    const bool counts =
        labels.classes.empty() ||
        std::find(labels.classes.begin(), labels.classes.end(), one.name) != labels.classes.end();
    const std::uint32_t seen = pixels[static_cast<std::size_t>(one.value)];
    if (counts && seen > 0 && static_cast<double>(seen) >= needed) return one.value;
  }
  return kIgnoreClass;
}

}  // namespace patchbay::plan
