// YAML as a checked tree that knows its lines. The only folder that includes yaml-cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"
#include "runtime/os/folders.h"

namespace patchbay::config {

inline constexpr std::size_t kMaxYamlBytes = 1u << 20;
/// Nodes of the tree with every alias expanded: a few lines of nested aliases must not become
/// gigabytes.
inline constexpr std::size_t kMaxYamlNodes = 100'000;
inline constexpr int kMaxYamlDepth = 32;
/// The most keys of one map; every new name is compared with all names before it.
inline constexpr std::size_t kMaxYamlMapKeys = 5'000;

/// One node. A scalar keeps its text: the key that reads it decides its type.
struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  struct Member;

  Kind kind = Kind::kNull;
  std::string text;                           ///< text of a scalar
  bool quoted = false;                        ///< a quoted scalar is text, whatever it looks like
  int line = 0;                               ///< line number, from 1
  std::shared_ptr<const std::string> source;  ///< name of the file, for messages
  std::vector<YamlNode> items;                ///< elements of a list
  std::vector<Member> members;  ///< members of a map in the file's order, with unique names

  /// The member of that name, or nullptr.
  const YamlNode* Find(std::string_view name) const;
  /// "run.yaml:12", or the source alone where there is no line.
  std::string Where() const;
};

struct YamlNode::Member {
  std::string name;
  int line = 0;
  YamlNode value;
};

/// Reads one document; an empty text is an empty map. `source` names the text in messages.
/// InvalidArgument with `source:line:` for malformed text, duplicate keys, keys that are not plain
/// text, tags other than YAML's own, more than one document, and anything beyond the limits above.
StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view source);

/// ParseYaml of a file. The message names the path as it was given.
StatusOr<YamlNode> ReadYamlFile(const Folders& allowed, const std::string& path);

/// `over` wins: maps are merged member by member, everything else is replaced. A null in `over`
/// takes the member out, so that the default holds again.
YamlNode MergeYaml(YamlNode under, const YamlNode& over);

/// The tree as JSON by YAML 1.2's core schema (null, true/false, integers, floats, text).
Json YamlToJson(const YamlNode& node);

}  // namespace patchbay::config
