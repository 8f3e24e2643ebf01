#include "runtime/model/jobs/option.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "runtime/core/strings.h"

namespace patchbay {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

std::string NumberText(double number) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.15g", number);
  return digits;
}

bool HasMin(const Option& option) { return option.min != std::numeric_limits<double>::lowest(); }
bool HasMax(const Option& option) { return option.max != std::numeric_limits<double>::max(); }

std::string ChoicesText(const Option& option) {
  if (!option.choices.empty()) return StrJoin(option.choices, ", ");
  std::string text;
  for (const std::int64_t number : option.numbers) {
    text += StrCat(text.empty() ? "" : ", ", number);
  }
  return text;
}

/// "64 to 4096", "at least 1", "32, 48 or 64" or "".
std::string RangeText(const Option& option) {
  if (!option.numbers.empty()) return StrCat("one of ", ChoicesText(option));
  if (HasMin(option) && HasMax(option)) {
    return StrCat(NumberText(option.min), " to ", NumberText(option.max));
  }
  if (HasMin(option)) return StrCat("at least ", NumberText(option.min));
  return HasMax(option) ? StrCat("at most ", NumberText(option.max)) : std::string();
}

/// "24x128x128"
std::string TextOf(const Sides& sides) {
  std::string text;
  for (const std::int64_t* side : sides.of) text += StrCat(text.empty() ? "" : "x", *side);
  return text;
}

/// The kind of value that the option takes, for a refusal.
std::string KindText(const Option& option) {
  const Overloaded kind = {
      [](const bool*) -> std::string { return "true or false"; },
      [](const std::string*) -> std::string { return "text"; },
      [](const std::vector<std::string>*) -> std::string { return "a list of texts"; },
      [](const std::optional<AxisNumbers>*) -> std::string { return "Z,Y,X, such as 1,1,1, each"; },
      [&](const Sides& sides) {
        return StrCat(option.value, ", such as ", TextOf(sides), ", each");
      },
      [](const std::int64_t*) -> std::string { return "a whole number"; },
      [](const std::optional<std::int64_t>*) -> std::string { return "a whole number"; },
      [](const auto*) -> std::string { return "a number"; }};
  return std::visit(kind, option.target);
}

bool Take(const Option&, const Json& value, bool* target) {
  if (!value.is_boolean()) return false;
  *target = value.get<bool>();
  return true;
}

bool Take(const Option& option, const Json& value, std::string* target) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (text != *target && !Allows(option, text)) return false;
  *target = text;
  return true;
}

bool Take(const Option& option, const Json& value, std::int64_t* target) {
  if (!value.is_number_integer() || !Allows(option, value.get<double>())) return false;
  *target = value.get<std::int64_t>();
  return true;
}

bool Take(const Option& option, const Json& value, double* target) {
  if (!value.is_number() || !Allows(option, value.get<double>())) return false;
  *target = value.get<double>();
  return true;
}

bool Take(const Option& option, const Json& value, const Sides& target) {
  if (!value.is_array() || value.size() != target.of.size()) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!Take(option, value[i], target.of[i])) return false;
  }
  return true;
}

bool Take(const Option& option, const Json& value, std::optional<std::int64_t>* target) {
  return Take(option, value, &target->emplace());
}

bool Take(const Option& option, const Json& value, std::optional<double>* target) {
  return Take(option, value, &target->emplace());
}

bool Take(const Option& option, const Json& value, std::vector<std::string>* target) {
  if (!value.is_array()) return false;
  for (const Json& one : value) {
    if (!one.is_string() || !Allows(option, one.get_ref<const std::string&>())) return false;
  }
  *target = value.get<std::vector<std::string>>();
  return true;
}

bool Take(const Option& option, const Json& value, std::optional<AxisNumbers>* target) {
  AxisNumbers numbers{};
  if (!value.is_array() || value.size() != numbers.size()) return false;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!value[i].is_number() || !Allows(option, value[i].get<double>())) return false;
    numbers[i] = value[i].get<double>();
  }
  *target = numbers;
  return true;
}

/// null where an optional target holds nothing.
Json ValueOf(const OptionTarget& target) {
  const auto of_optional = [](const auto& value) { return value ? Json(*value) : Json(); };
  const Overloaded value = {[](const auto* plain) { return Json(*plain); },
                            [&](const std::optional<std::int64_t>* v) { return of_optional(*v); },
                            [&](const std::optional<double>* v) { return of_optional(*v); },
                            [&](const std::optional<AxisNumbers>* v) { return of_optional(*v); },
                            [](const Sides& sides) {
                              Json list = Json::array();
                              for (const std::int64_t* side : sides.of) list.push_back(*side);
                              return list;
                            }};
  return std::visit(value, target);
}

/// "512", "the slide's" or "".
std::string DefaultText(const Option& option) {
  if (const auto* sides = std::get_if<Sides>(&option.target)) return TextOf(*sides);
  const Json value = ValueOf(option.target);
  if (option.IsSwitch() || value.is_null() || value == "" || value.is_array()) {
    return option.otherwise;
  }
  return value.is_string() ? value.get<std::string>() : DumpJson(value);
}

}  // namespace

std::string Option::Key() const {
  std::string key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

bool Allows(const Option& option, double number) {
  if (!std::isfinite(number) || number < option.min || number > option.max) return false;
  return option.numbers.empty() ||
         std::any_of(option.numbers.begin(), option.numbers.end(),
                     [&](std::int64_t one) { return static_cast<double>(one) == number; });
}

bool Allows(const Option& option, const std::string& text) {
  return option.choices.empty() ||
         std::find(option.choices.begin(), option.choices.end(), text) != option.choices.end();
}

std::string RefusalOf(const Option& option, const std::string& given) {
  std::string expected = KindText(option);
  if (!option.choices.empty() || !option.numbers.empty()) {
    expected = StrCat("one of ", ChoicesText(option));
  } else if (HasMin(option) && HasMax(option)) {
    expected += StrCat(" in ", NumberText(option.min), "..", NumberText(option.max));
  } else if (HasMin(option)) {
    expected += StrCat(" from ", NumberText(option.min), " on");
  } else if (HasMax(option)) {
    expected += StrCat(" up to ", NumberText(option.max));
  }
  return StrCat("expected ", expected, ", not '", given, "'", option.hint.empty() ? "" : ": ",
                option.hint);
}

Status ReadOption(const Option& option, const Json& value, std::string_view what) {
  const bool is_taken =
      std::visit([&](const auto& target) { return Take(option, value, target); }, option.target);
  if (is_taken) return absl::OkStatus();
  return InvalidArgument(
      what, ": ", option.Key(), ": ",
      RefusalOf(option, value.is_string() ? value.get<std::string>() : DumpJson(value)));
}

Status ReadOptions(const std::vector<Option>& options, const Json& payload, std::string_view what,
                   std::initializer_list<std::string_view> others) {
  if (!payload.is_object()) return InvalidArgument(what, ": not an object");
  for (const auto& [key, value] : payload.items()) {
    if (std::find(others.begin(), others.end(), key) != others.end()) continue;
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const Option& one) { return one.Key() == key; });
    if (option == options.end()) return InvalidArgument(what, ": unknown key '", key, "'");
    const bool is_absent = value.is_null() && ValueOf(option->target).is_null();
    if (!is_absent) PB_RETURN_IF_ERROR(ReadOption(*option, value, what));
  }
  return absl::OkStatus();
}

Json WriteOptions(const std::vector<Option>& options, const std::vector<Option>& defaults) {
  Json payload = Json::object();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Json value = ValueOf(options[i].target);
    if (options[i].always || value != ValueOf(defaults[i].target)) {
      payload[options[i].Key()] = value;
    }
  }
  return payload;
}

std::vector<Option> ForHelp(std::vector<Option> options) {
  for (Option& option : options) {
    const std::string range = RangeText(option);
    if (!range.empty()) option.help += StrCat(", ", range);
    const std::string fallback = DefaultText(option);
    const bool is_text = ValueOf(option.target).is_null() || fallback == option.otherwise;
    if (!fallback.empty()) {
      option.help += StrCat(is_text ? " (default: " : " (default ", fallback, ")");
    }
  }
  return options;
}

std::string DocumentOptions(const std::vector<Option>& options) {
  std::string text = "| option | values | default | help |\n| --- | --- | --- | --- |\n";
  for (const Option& option : options) {
    std::string values = option.choices.empty() ? RangeText(option) : ChoicesText(option);
    if (!option.unit.empty()) values += StrCat(values.empty() ? "" : " ", option.unit);
    text += StrCat("| `", option.name, "` | ", values, " | ", DefaultText(option), " | ",
                   option.help, " |\n");
  }
  return text;
}

}  // namespace patchbay
