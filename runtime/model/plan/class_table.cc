#include "runtime/model/plan/class_table.h"

#include <algorithm>
#include <set>

#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/format/yaml/key_table.h"
#include "runtime/format/yaml/yaml.h"

namespace patchbay::plan {
namespace {

constexpr std::size_t kMaxNameBytes = 200;
constexpr std::size_t kMaxNames = 1000;

using config::Key;
using config::KeyType;

Key NamesKey(const char* name, const char* help) {
  return {.name = name,
          .type = KeyType::kStringList,
          .fallback = Json::array(),
          .max_items = kMaxNames,
          .help = help};
}

/// Keys of the table, without its list of classes.
Key ClassTableKeys() {
  return {.type = KeyType::kMap,
          .members = {{.name = "exhaustive", .type = KeyType::kBool, .fallback = false},
                      {.name = "background", .fallback = ""},
                      NamesKey("region_of_interest", "names of annotations"),
                      NamesKey("skip", "names of annotations")}};
}

/// Keys of one class, without its `from`.
Key ClassKeys() {
  return {
      .type = KeyType::kMap,
      .members = {
          {.name = "name", .required = true},
          {.name = "value", .type = KeyType::kInt, .required = true, .min = 0, .max = kIgnoreClass},
          NamesKey("aliases", "other names")}};
}

/// Removes one member of `node`, and returns it.
const config::YamlNode* Without(const config::YamlNode& node, std::string_view name,
                                config::YamlNode& rest) {
  rest = node;
  std::erase_if(rest.members, [&](const auto& member) { return member.name == name; });
  return node.Find(name);
}

Status Refuse(const config::YamlNode& at, std::string_view cause) {
  return InvalidArgument(at.Where(), ": ", cause);
}

/// 3, or [1, 2].
StatusOr<std::vector<int>> ValuesIn(const config::YamlNode& node) {
  const Key holder = {
      .type = KeyType::kMap,
      .members = {{.name = "from", .type = KeyType::kIntList, .min = 0, .max = kIgnoreClass}}};
  config::YamlNode list = node;
  if (node.kind == config::YamlNode::Kind::kScalar) {
    list.kind = config::YamlNode::Kind::kList;
    list.items = {node};
    list.text.clear();
  }
  config::YamlNode map;
  map.kind = config::YamlNode::Kind::kMap;
  map.line = node.line;
  map.source = node.source;
  map.members.push_back({"from", node.line, list});
  PB_ASSIGN_OR_RETURN(const Json values, config::Validate(map, holder));
  return values["from"].get<std::vector<int>>();
}

StatusOr<std::map<std::string, std::vector<int>>> FromIn(const config::YamlNode& node) {
  std::map<std::string, std::vector<int>> from;
  if (node.kind != config::YamlNode::Kind::kMap) {
    PB_ASSIGN_OR_RETURN(from[""], ValuesIn(node));
    return from;
  }
  for (const auto& member : node.members) {
    PB_ASSIGN_OR_RETURN(from[member.name], ValuesIn(member.value));
  }
  return from;
}

StatusOr<Json> ClassIn(const config::YamlNode& node) {
  if (node.kind != config::YamlNode::Kind::kMap) {
    return Refuse(node, "a class is a map such as {name: tumour, value: 1}");
  }
  config::YamlNode rest;
  const config::YamlNode* from = Without(node, "from", rest);
  PB_ASSIGN_OR_RETURN(Json values, config::Validate(rest, ClassKeys()));
  if (from == nullptr) return values;
  PB_ASSIGN_OR_RETURN(values["from"], FromIn(*from));
  return values;
}

/// The form in which names are compared: lower case, no surrounding blanks.
std::string Plain(std::string_view name) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!name.empty() && is_blank(name.front())) name.remove_prefix(1);
  while (!name.empty() && is_blank(name.back())) name.remove_suffix(1);
  std::string out(name);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

bool IsClassName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

Status CheckNames(const ClassTable& table) {
  std::set<std::string> seen;
  for (const std::string& name : NamesOf(table)) {
    if (name.empty() || name.size() > kMaxNameBytes) {
      return InvalidArgument("name '", name.substr(0, 50), "' is not 1 to ", kMaxNameBytes,
                             " bytes");
    }
    if (!seen.insert(Plain(name)).second) {
      return InvalidArgument("name '", name,
                             "' is listed twice (upper and lower case are the same, and a class ",
                             "needs no alias of its own name)");
    }
  }
  return absl::OkStatus();
}

/// Checks that each mask value of a site means one class.
Status CheckFrom(const ClassTable& table) {
  std::map<std::pair<std::string, int>, std::string> seen;
  for (const LabelClass& one : table.classes) {
    for (const auto& [site, values] : one.from) {
      for (const int value : values) {
        const auto [at, is_new] = seen.insert({{site, value}, one.name});
        if (is_new) continue;
        return InvalidArgument("mask value ", value, site.empty() ? "" : " of site ", site,
                               " is both ", at->second, " and ", one.name);
      }
    }
  }
  return absl::OkStatus();
}

Status CheckClasses(const ClassTable& table) {
  if (table.classes.empty() || table.classes.size() > kMaxClasses) {
    return InvalidArgument("classes: ", table.classes.size(), " of them, expected 1 to ",
                           kMaxClasses);
  }
  std::set<int> values;
  for (const LabelClass& one : table.classes) {
    if (!IsClassName(one.name)) {
      return InvalidArgument(
          "class '", one.name,
          "': a name is lower-case letters, digits, _ and -; others are aliases");
    }
    if (one.value != kIgnoreClass && !values.insert(one.value).second) {
      return InvalidArgument("class '", one.name, "': value ", one.value, " is another class's");
    }
  }
  PB_RETURN_IF_ERROR(CheckNames(table));
  return CheckFrom(table);
}

/// The class of uncovered pixels, where there are such.
Status FindBackground(ClassTable& table) {
  const bool is_needed = table.exhaustive || !table.region_of_interest.empty();
  if (!is_needed) {
    if (table.background.empty()) return absl::OkStatus();
    return InvalidArgument(
        "background: needs exhaustive: true or region_of_interest, or no pixel has it");
  }
  if (table.exhaustive && !table.region_of_interest.empty()) {
    return InvalidArgument("exhaustive: true and region_of_interest exclude each other");
  }
  for (const LabelClass& one : table.classes) {
    if (table.background.empty() && one.value == 0) table.background = one.name;
  }
  if (table.Find(table.background) != nullptr) return absl::OkStatus();
  return InvalidArgument(
      table.background.empty()
          ? std::string("background: name the class of the pixels that no annotation covers")
          : StrCat("background: '", table.background, "' is not a class of the table"));
}

Status Finish(ClassTable& table) {
  PB_RETURN_IF_ERROR(CheckClasses(table));
  return FindBackground(table);
}

}  // namespace

const LabelClass* ClassTable::Find(std::string_view name) const {
  for (const LabelClass& one : classes) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

NamedClass MeaningOf(const ClassTable& table, std::string_view name) {
  const std::string plain = Plain(name);
  const auto is_one_of = [&](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& other) { return Plain(other) == plain; });
  };
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    const LabelClass& one = table.classes[i];
    if (Plain(one.name) == plain || is_one_of(one.aliases)) return {NameMeaning::kClass, i};
  }
  if (is_one_of(table.region_of_interest)) return {NameMeaning::kRegionOfInterest, 0};
  if (is_one_of(table.skip)) return {NameMeaning::kSkipped, 0};
  return {};
}

std::vector<std::string> NamesOf(const ClassTable& table) {
  std::vector<std::string> names;
  for (const LabelClass& one : table.classes) {
    names.push_back(one.name);
    names.insert(names.end(), one.aliases.begin(), one.aliases.end());
  }
  names.insert(names.end(), table.region_of_interest.begin(), table.region_of_interest.end());
  names.insert(names.end(), table.skip.begin(), table.skip.end());
  return names;
}

StatusOr<std::vector<std::optional<int>>> MaskValues(const ClassTable& table,
                                                     std::string_view site) {
  std::vector<std::optional<int>> out(256);
  std::vector<std::string> sites;
  bool has_from = false, is_known = false;
  for (const LabelClass& one : table.classes) {
    for (const auto& [known, values] : one.from) {
      has_from = true;
      if (!known.empty() && std::find(sites.begin(), sites.end(), known) == sites.end()) {
        sites.push_back(known);
      }
      is_known = is_known || known == site;
      if (!known.empty() && known != site) continue;
      for (const int value : values) out[static_cast<std::size_t>(value)] = one.value;
    }
  }
  if (!has_from) {
    for (const LabelClass& one : table.classes)
      out[static_cast<std::size_t>(one.value)] = one.value;
  }
  const bool names_ignore = std::any_of(table.classes.begin(), table.classes.end(),
                                        [](const auto& one) { return one.value == kIgnoreClass; });
  if (!out[kIgnoreClass] && names_ignore) out[kIgnoreClass] = kIgnoreClass;
  if (!sites.empty() && !is_known) {
    return InvalidArgument(
        "class table: ",
        site.empty() ? std::string("no site was named") : StrCat("site '", site, "' is not in it"),
        ": its mask values are those of ", StrJoin(sites, ", "));
  }
  return out;
}

StatusOr<ClassTable> ParseClassTable(std::string_view text, std::string_view source) {
  PB_ASSIGN_OR_RETURN(const config::YamlNode node, config::ParseYaml(text, source));
  if (node.kind != config::YamlNode::Kind::kMap) return Refuse(node, "not a map with 'classes'");
  config::YamlNode rest;
  const config::YamlNode* classes = Without(node, "classes", rest);
  if (classes == nullptr || classes->kind != config::YamlNode::Kind::kList) {
    return Refuse(classes == nullptr ? node : *classes,
                  "key 'classes': expected a list of classes");
  }
  PB_ASSIGN_OR_RETURN(Json values, config::Validate(rest, ClassTableKeys()));
  values["classes"] = Json::array();
  for (const config::YamlNode& item : classes->items) {
    PB_ASSIGN_OR_RETURN(values["classes"].emplace_back(), ClassIn(item));
  }
  PB_ASSIGN_OR_RETURN(ClassTable table, FromJson<ClassTable>(values, source));
  const Status sound = Finish(table);
  return sound.ok() ? StatusOr<ClassTable>(table) : Refuse(*classes, MessageOf(sound));
}

StatusOr<ClassTable> ClassTableFromJson(const Json& value, std::string_view what) {
  PB_ASSIGN_OR_RETURN(ClassTable table, FromJson<ClassTable>(value, what));
  PB_RETURN_IF_ERROR(Annotate(Finish(table), what));
  return table;
}

}  // namespace patchbay::plan
