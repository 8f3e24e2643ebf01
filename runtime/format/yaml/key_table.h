// Key tables: the keys that a config file may have. The code that uses a value declares its key;
// the reader checks a file against the table, and the reference page of the keys is printed from
// it.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/format/yaml/yaml.h"

namespace patchbay::config {

/// The values that a key takes; anything else is refused with file and line.
enum class KeyType {
  kBool,
  kInt,    ///< 64-bit; accepts 4_096 as well as 4096
  kFloat,  ///< finite
  kString,
  kChoice,  ///< one of Key::choices
  kIntList,
  kFloatList,
  kStringList,  ///< a single string is a list of one
  kMap,         ///< keys in Key::members
  kSteps,       ///< a list of maps of a single key: a name of Key::members and its options, or the
                ///< list that is the value of its only option
  kNamed,       ///< a map of any names; every value is described by Key::members[0]
  kOptions,     ///< a map of anything, by YAML's own types: whoever uses it checks it
};

/// One key. Aggregate: declared with designated initialisers.
struct Key {
  std::string name = {};
  KeyType type = KeyType::kString;
  /// The value when the file is silent; null = the value is absent then. Ignored for kMap, whose
  /// members have their own.
  Json fallback = nullptr;
  bool required = false;
  bool optional = false;  ///< a kMap that is absent when the file is silent, defaults and all
  std::string unit = {};  ///< "px", "ms", ...; empty for pure numbers
  double min = -std::numeric_limits<double>::infinity();  ///< numbers, and each number of a list
  double max = std::numeric_limits<double>::infinity();
  std::size_t min_items = 0;  ///< least length of a list
  std::size_t max_items = 10'000;
  std::size_t rows = 0;  ///< a kFloatList may also be a list of this many lists; 0 = not
  std::vector<std::string> choices = {};
  std::string help = {};  ///< one sentence, lower case, no full stop
  std::vector<Key> members = {};
  /// Checks rules between members, once types, ranges and defaults are done. File and line are put
  /// before its message. May be empty.
  std::function<Status(const Json&)> check = {};
};

/// Checks `node` against the kMap `table` and returns the values with defaults filled in, as JSON
/// whose dump is canonical. InvalidArgument:
///   run.yaml:4: unknown key 'batch.globalsize' (did you mean 'global_size'?)
///   run.yaml:4: key 'batch.global_size': expected an integer, got 'many'
StatusOr<Json> Validate(const YamlNode& node, const Key& table);

/// Validate for values that arrive as JSON (a task's payload). Messages begin with `what` instead
/// of file and line.
StatusOr<Json> ValidateJson(const Json& value, const Key& table, std::string_view what);

/// `value`, which passed the table, without members at their defaults. Maps that become empty are
/// removed too.
Json WithoutDefaults(Json value, const Key& table);

/// The line of the key at a path in the form of messages ("augment[0].rotate90", "batch.prefetch"),
/// or of the nearest enclosing map in the file; 0 when the file lacks even the path's first key.
int LineOf(const YamlNode& node, std::string_view path);

/// A Markdown table with one row for every key below `table`: key, type, default, unit and range,
/// help. Keys are written with dots. The steps of a kSteps key have a table of their own: pass them
/// as the members of a map.
std::string DocumentKeys(const Key& table);

/// The table as a YAML file with a comment above every key. Keys with a default have it as their
/// value, required keys have no value, keys that are absent by default are commented out. Once the
/// required keys are filled in, Validate accepts it and finds only defaults.
std::string YamlOfKeys(const Key& table);

}  // namespace patchbay::config
