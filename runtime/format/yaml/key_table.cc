#include "runtime/format/yaml/key_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "runtime/core/strings.h"
#include "runtime/format/yaml/key_text.h"

namespace patchbay::config {

namespace {

std::string_view TypeName(KeyType type) {
  switch (type) {
    case KeyType::kBool:
      return "true or false";
    case KeyType::kInt:
      return "an integer";
    case KeyType::kFloat:
      return "a number";
    case KeyType::kString:
      return "text";
    case KeyType::kChoice:
      return "one of";
    case KeyType::kIntList:
      return "a list of integers";
    case KeyType::kFloatList:
      return "a list of numbers";
    case KeyType::kStringList:
      return "text or a list of texts";
    case KeyType::kMap:
      return "a map of keys";
    case KeyType::kSteps:
      return "a list of steps, each one name with its options";
    case KeyType::kNamed:
      return "a map of names and values";
    case KeyType::kOptions:
      return "a map of options";
  }
  return "";
}

std::string Shown(const YamlNode& node) {
  constexpr std::size_t kMaxShown = 40;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  if (node.text.size() <= kMaxShown) return StrCat("'", node.text, "'");
  return StrCat("'", node.text.substr(0, kMaxShown), "...'");
}

std::string NumberText(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value && std::abs(value) < 1e15 ? StrCat(whole)
                                                                       : StrCat(value);
}

}  // namespace

std::string RangeText(const Key& key) {
  const bool low = std::isfinite(key.min), high = std::isfinite(key.max);
  if (low && high) return StrCat(NumberText(key.min), "..", NumberText(key.max));
  if (low) return StrCat(">= ", NumberText(key.min));
  if (high) return StrCat("<= ", NumberText(key.max));
  return "";
}

namespace {

std::string Joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : StrCat(path, ".", name);
}

Status Wrong(const YamlNode& node, const std::string& path, std::string_view cause) {
  if (path.empty()) return InvalidArgument(node.Where(), ": ", cause);
  return InvalidArgument(node.Where(), ": key '", path, "': ", cause);
}

/// The range around the identity of an op that a single value must mean, for advice: a `brightness`
/// of 0.2 is [0.8, 1.2]; "" where the key is no such range.
std::string AsRange(const YamlNode& node, const Key& key) {
  const Json value = YamlToJson(node), &fallback = key.fallback;
  const bool is_range = key.type == KeyType::kFloatList && key.min_items == 2 &&
                        key.max_items == 2 && fallback.is_array() && fallback.size() == 2 &&
                        fallback[0].is_number() && fallback[1].is_number();
  if (!is_range || !value.is_number()) return "";
  const double half = value.get<double>();
  const auto low = fallback[0].get<double>(), high = fallback[1].get<double>();
  const bool around_one = low == high ? low == 1 : low < 1 && high > 1;
  const bool around_zero = low == 0 && high == 0;
  if (!(around_one || around_zero) || half <= 0 || (around_one && half > 1)) return "";
  const auto text = [](double bound) { return NumberText(std::round(bound * 1e9) / 1e9); };
  const double centre = around_one ? 1 : 0;
  return StrCat("; it is a range, [low, high], as [", text(centre - half), ", ",
                text(centre + half), "]");
}

/// A single value written as a list, for advice; "" if the key is no list.
std::string AsList(const YamlNode& node, const Key& key) {
  const bool is_list = key.type == KeyType::kIntList || key.type == KeyType::kFloatList ||
                       key.type == KeyType::kStringList;
  if (!is_list || node.kind != YamlNode::Kind::kScalar || node.text.empty()) return "";
  if (std::string range = AsRange(node, key); !range.empty()) return range;
  const std::vector<std::string> values(std::max<std::size_t>(1, key.min_items), node.text);
  if (values.size() == 1) return StrCat("; write [", node.text, "]");
  return StrCat("; it has ", values.size(), " values, as [", StrJoin(values, ", "), "]");
}

Status WrongType(const YamlNode& node, const std::string& path, const Key& key) {
  std::string expected(TypeName(key.type));
  if (key.type == KeyType::kChoice) expected = StrCat("one of ", StrJoin(key.choices, ", "));
  return Wrong(node, path, StrCat("expected ", expected, ", got ", Shown(node), AsList(node, key)));
}

Status CheckRange(const YamlNode& node, const std::string& path, const Key& key, double value) {
  if (value >= key.min && value <= key.max) return absl::OkStatus();
  return Wrong(node, path,
               StrCat(NumberText(value), " is out of range (", RangeText(key),
                      key.unit.empty() ? "" : " ", key.unit, ")"));
}

bool IsInteger(const Json& value) {
  return value.is_number_integer() &&
         !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
}

/// A single bool, number or text.
StatusOr<Json> ScalarValue(const YamlNode& node, const std::string& path, const Key& key,
                           KeyType type) {
  if (node.kind != YamlNode::Kind::kScalar) return WrongType(node, path, key);
  const Json value = YamlToJson(node);
  switch (type) {
    case KeyType::kBool:
      if (!value.is_boolean()) return WrongType(node, path, key);
      return value;
    case KeyType::kInt:
      if (!IsInteger(value)) return WrongType(node, path, key);
      PB_RETURN_IF_ERROR(CheckRange(node, path, key, value.get<double>()));
      return value.get<std::int64_t>();
    case KeyType::kFloat:
      if (!value.is_number()) return WrongType(node, path, key);
      PB_RETURN_IF_ERROR(CheckRange(node, path, key, value.get<double>()));
      return value.get<double>();
    case KeyType::kString:
      if (node.text.empty() && !node.quoted) return WrongType(node, path, key);
      return node.text;
    default:
      return WrongType(node, path, key);
  }
}

StatusOr<Json> ChoiceValue(const YamlNode& node, const std::string& path, const Key& key) {
  if (node.kind != YamlNode::Kind::kScalar) return WrongType(node, path, key);
  for (const std::string& choice : key.choices) {
    if (choice == node.text) return Json(choice);
  }
  const std::string near = Nearest(node.text, key.choices);
  const std::string hint = near.empty() ? "" : StrCat(" (did you mean '", near, "'?)");
  return Wrong(node, path,
               StrCat("expected one of ", StrJoin(key.choices, ", "), ", got ", Shown(node), hint));
}

StatusOr<Json> ListValue(const YamlNode& node, const std::string& path, const Key& key);

/// [[1, 2], [3, 4], ...]: key.rows lists, each of the key's kind.
StatusOr<Json> RowsValue(const YamlNode& node, const std::string& path, const Key& key) {
  if (node.items.size() != key.rows) {
    return Wrong(node, path, StrCat("expected ", key.rows, " lists, got ", node.items.size()));
  }
  Key one = key;
  one.rows = 0;
  Json rows = Json::array();
  for (const YamlNode& row : node.items) {
    PB_ASSIGN_OR_RETURN(rows.emplace_back(), ListValue(row, path, one));
  }
  return rows;
}

StatusOr<Json> ListValue(const YamlNode& node, const std::string& path, const Key& key) {
  if (key.rows > 0 && !node.items.empty() && node.items[0].kind == YamlNode::Kind::kList) {
    return RowsValue(node, path, key);
  }
  const KeyType item_type = key.type == KeyType::kIntList     ? KeyType::kInt
                            : key.type == KeyType::kFloatList ? KeyType::kFloat
                                                              : KeyType::kString;
  Json list = Json::array();
  if (key.type == KeyType::kStringList && node.kind == YamlNode::Kind::kScalar) {
    PB_ASSIGN_OR_RETURN(Json item, ScalarValue(node, path, key, item_type));
    list.push_back(std::move(item));
  } else if (node.kind == YamlNode::Kind::kList) {
    for (const YamlNode& item_node : node.items) {
      PB_ASSIGN_OR_RETURN(Json item, ScalarValue(item_node, path, key, item_type));
      list.push_back(std::move(item));
    }
  } else {
    return WrongType(node, path, key);
  }
  if (list.size() < key.min_items || list.size() > key.max_items) {
    const std::string wanted = key.min_items == key.max_items
                                   ? StrCat(key.min_items)
                                   : StrCat(key.min_items, " to ", key.max_items);
    return Wrong(node, path, StrCat("expected ", wanted, " values, got ", list.size()));
  }
  return list;
}

StatusOr<Json> MapValue(const YamlNode& node, const std::string& path, const Key& key);
StatusOr<Json> ValueOf(const YamlNode& node, const std::string& path, const Key& key);

const Key* FindKey(const std::vector<Key>& keys, const std::string& name) {
  for (const Key& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

Status Unknown(const YamlNode& node, int line, const std::string& path, const std::string& name,
               const Key& table) {
  std::vector<std::string> names;
  for (const Key& key : table.members) names.push_back(key.name);
  const std::string near = Nearest(name, names);
  const std::string hint = !near.empty()   ? StrCat(" (did you mean '", near, "'?)")
                           : names.empty() ? std::string(" (it takes no keys)")
                                           : StrCat(" (known: ", StrJoin(names, ", "), ")");
  YamlNode here;
  here.line = line;
  here.source = node.source;
  return InvalidArgument(here.Where(), ": unknown key '", Joined(path, name), "'", hint);
}

/// [{flip: {...}}, ...]. A step without options may be written `flip`, `flip:` or `flip: {}`.
/// The options of a step; a list in their place is the value of the only option that it takes:
/// {percentile: [1, 99]} for {percentile: {range: [1, 99]}}.
YamlNode OptionsOf(const YamlNode& given, const Key& step) {
  if (given.kind != YamlNode::Kind::kList || step.members.size() != 1) return given;
  YamlNode options;
  options.kind = YamlNode::Kind::kMap;
  options.line = given.line;
  options.source = given.source;
  options.members.push_back({step.members[0].name, given.line, given});
  return options;
}

StatusOr<Json> StepsValue(const YamlNode& node, const std::string& path, const Key& key) {
  if (node.kind != YamlNode::Kind::kList) return WrongType(node, path, key);
  if (node.items.size() > key.max_items) {
    return Wrong(node, path, StrCat("more than ", key.max_items, " steps"));
  }
  Json steps = Json::array();
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = node.items[i];
    const std::string place = StrCat(path, "[", i, "]");
    YamlNode no_options;
    no_options.kind = YamlNode::Kind::kMap;
    no_options.line = item.line;
    no_options.source = item.source;
    const bool bare = item.kind == YamlNode::Kind::kScalar;
    if (!bare && (item.kind != YamlNode::Kind::kMap || item.members.size() != 1)) {
      return Wrong(item, place, "expected one name with its options, like {flip: {}}");
    }
    const std::string& name = bare ? item.text : item.members[0].name;
    const Key* step = FindKey(key.members, name);
    if (step == nullptr) {
      return Unknown(item, bare ? item.line : item.members[0].line, place, name, key);
    }
    const bool silent = bare || item.members[0].value.kind == YamlNode::Kind::kNull;
    const YamlNode options = silent ? no_options : OptionsOf(item.members[0].value, *step);
    PB_ASSIGN_OR_RETURN(Json value, ValueOf(options, Joined(place, name), *step));
    steps.push_back(Json{{name, std::move(value)}});
  }
  return steps;
}

/// {any name: a value of the only member's kind}.
StatusOr<Json> NamedValue(const YamlNode& node, const std::string& path, const Key& key) {
  if (node.kind != YamlNode::Kind::kMap) return WrongType(node, path, key);
  const Key& member = key.members[0];
  Json map = Json::object();
  for (const YamlNode::Member& given : node.members) {
    YamlNode value = given.value;
    if (value.kind == YamlNode::Kind::kNull && member.type == KeyType::kMap) {
      value.kind = YamlNode::Kind::kMap;
    }
    PB_ASSIGN_OR_RETURN(map[given.name], ValueOf(value, Joined(path, given.name), member));
  }
  return map;
}

StatusOr<Json> ValueOf(const YamlNode& node, const std::string& path, const Key& key) {
  switch (key.type) {
    case KeyType::kBool:
    case KeyType::kInt:
    case KeyType::kFloat:
    case KeyType::kString:
      return ScalarValue(node, path, key, key.type);
    case KeyType::kChoice:
      return ChoiceValue(node, path, key);
    case KeyType::kIntList:
    case KeyType::kFloatList:
    case KeyType::kStringList:
      return ListValue(node, path, key);
    case KeyType::kMap:
      return MapValue(node, path, key);
    case KeyType::kSteps:
      return StepsValue(node, path, key);
    case KeyType::kNamed:
      return NamedValue(node, path, key);
    case KeyType::kOptions:
      if (node.kind != YamlNode::Kind::kMap) return WrongType(node, path, key);
      return YamlToJson(node);
  }
  return Internal("validate config: a key type is missing here");
}

/// The value of a member the file does not mention; null = leave it out.
StatusOr<Json> Absent(const YamlNode& around, const std::string& path, const Key& key) {
  if (key.required) return InvalidArgument(around.Where(), ": key '", path, "' is missing");
  if (key.type != KeyType::kMap || key.optional) return key.fallback;
  YamlNode empty;
  empty.kind = YamlNode::Kind::kMap;
  empty.line = around.line;
  empty.source = around.source;
  return MapValue(empty, path, key);
}

StatusOr<Json> MapValue(const YamlNode& node, const std::string& path, const Key& key) {
  if (node.kind != YamlNode::Kind::kMap) return WrongType(node, path, key);
  for (const YamlNode::Member& member : node.members) {
    if (FindKey(key.members, member.name) == nullptr) {
      return Unknown(node, member.line, path, member.name, key);
    }
  }
  Json map = Json::object();
  for (const Key& member : key.members) {
    const std::string member_path = Joined(path, member.name);
    const YamlNode* given = node.Find(member.name);
    if (given != nullptr && given->kind == YamlNode::Kind::kNull) given = nullptr;
    StatusOr<Json> value =
        given == nullptr ? Absent(node, member_path, member) : ValueOf(*given, member_path, member);
    if (!value.ok()) return value.status();
    if (given != nullptr && member.check) {
      if (const Status bad = member.type == KeyType::kMap ? absl::OkStatus() : member.check(*value);
          !bad.ok()) {
        return Wrong(*given, member_path, MessageOf(bad));
      }
    }
    if (!value->is_null()) map[member.name] = *std::move(value);
  }
  if (key.check) {
    if (const Status bad = key.check(map); !bad.ok()) return Wrong(node, path, MessageOf(bad));
  }
  return map;
}

/// JSON as a tree without lines, so that both kinds of input pass through one set of rules.
YamlNode FromJson(const Json& value, const std::shared_ptr<const std::string>& source) {
  YamlNode node;
  node.source = source;
  if (value.is_object()) {
    node.kind = YamlNode::Kind::kMap;
    for (const auto& [name, member] : value.items()) {
      node.members.push_back({name, 0, FromJson(member, source)});
    }
  } else if (value.is_array()) {
    node.kind = YamlNode::Kind::kList;
    for (const Json& item : value) node.items.push_back(FromJson(item, source));
  } else if (!value.is_null()) {
    node.kind = YamlNode::Kind::kScalar;
    node.quoted = value.is_string();
    node.text = value.is_string() ? value.get<std::string>() : DumpJson(value);
  }
  return node;
}

std::string TypeLabel(const Key& key) {
  switch (key.type) {
    case KeyType::kBool:
      return "bool";
    case KeyType::kInt:
      return "int";
    case KeyType::kFloat:
      return "float";
    case KeyType::kString:
      return "text";
    case KeyType::kChoice:
      return StrJoin(key.choices, ", ");
    case KeyType::kIntList:
      return "list of int";
    case KeyType::kFloatList:
      return key.rows > 0 ? StrCat("list of float, or ", key.rows, " of them") : "list of float";
    case KeyType::kStringList:
      return "text or list of text";
    case KeyType::kSteps:
      return "list of steps";
    case KeyType::kMap:
      return "map";
    case KeyType::kNamed:
      return StrCat("names, each ", TypeLabel(key.members[0]));
    case KeyType::kOptions:
      return "map of options";
  }
  return "";
}

void DocumentRow(const Key& key, const std::string& path, std::string& out) {
  const std::string range = RangeText(key);
  const std::string unit =
      key.unit.empty() || range.empty() ? StrCat(key.unit, range) : StrCat(key.unit, ", ", range);
  const std::string fallback = key.required             ? "required"
                               : key.fallback.is_null() ? "-"
                                                        : StrCat("`", DumpJson(key.fallback), "`");
  out += StrCat("| `", path, "` | ", TypeLabel(key), " | ", fallback, " | ",
                unit.empty() ? "-" : unit, " | ", key.help, " |\n");
}

void DocumentMembers(const Key& table, const std::string& path, std::string& out) {
  for (const Key& key : table.members) {
    const std::string key_path = Joined(path, key.name);
    if (key.type == KeyType::kMap) {
      out += StrCat("| `", key_path, "` | map | - | - | ", key.help,
                    key.members.empty() ? "; no options" : "", " |\n");
      DocumentMembers(key, key_path, out);
      continue;
    }
    DocumentRow(key, key_path, out);
  }
}

}  // namespace

StatusOr<Json> Validate(const YamlNode& node, const Key& table) {
  return MapValue(node, "", table);
}

StatusOr<Json> ValidateJson(const Json& value, const Key& table, std::string_view what) {
  const auto source = std::make_shared<const std::string>(what);
  return MapValue(FromJson(value, source), "", table);
}

Json WithoutDefaults(Json value, const Key& table) {
  for (const Key& key : table.members) {
    const auto found = value.find(key.name);
    if (found == value.end()) continue;
    if (key.type == KeyType::kMap) {
      *found = WithoutDefaults(std::move(*found), key);
      if (found->empty() && !key.optional) value.erase(found);
    } else if (key.fallback != nullptr && *found == key.fallback) {
      value.erase(found);
    } else if (key.type == KeyType::kSteps) {
      for (Json& step : *found) {
        for (const Key& op : key.members) {
          const auto options = step.find(op.name);
          if (options != step.end()) *options = WithoutDefaults(std::move(*options), op);
        }
      }
    }
  }
  return value;
}

int LineOf(const YamlNode& node, std::string_view path) {
  const YamlNode* at = &node;
  int line = 0;
  while (!path.empty()) {
    const bool item = path[0] == '[';
    const std::size_t end = item ? path.find(']') : std::min(path.find_first_of(".["), path.size());
    if (end == std::string_view::npos) break;
    const std::string_view word = path.substr(item ? 1 : 0, end - (item ? 1 : 0));
    if (item) {
      std::size_t index = 0;
      const auto number = std::from_chars(word.data(), word.data() + word.size(), index);
      if (number.ec != std::errc() || index >= at->items.size()) break;
      at = &at->items[index];
      line = at->line;
    } else {
      const auto member = std::find_if(at->members.begin(), at->members.end(),
                                       [&](const auto& m) { return m.name == word; });
      if (member == at->members.end()) break;
      at = &member->value;
      line = member->line;
    }
    path.remove_prefix(std::min(end + (item ? 1 : 0), path.size()));
    if (!path.empty() && path[0] == '.') path.remove_prefix(1);
  }
  return line;
}

std::string DocumentKeys(const Key& table) {
  std::string out =
      "| key | type | default | unit, range | meaning |\n| --- | --- | --- | --- | --- |\n";
  DocumentMembers(table, "", out);
  return out;
}

}  // namespace patchbay::config
