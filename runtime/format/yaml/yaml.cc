#include "runtime/format/yaml/yaml.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "runtime/core/printable.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::config {
namespace {

/// Leaves yaml-cpp's parser with our own message; caught in ParseYaml.
struct Refusal {
  int line;
  std::string cause;
};

/// Builds the tree from yaml-cpp's events, so that every limit holds before memory is spent.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::shared_ptr<const std::string> source) : source_(std::move(source)) {}

  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(Make(YamlNode::Kind::kNull, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) throw Refusal{Line(mark), "an alias inside its own anchor"};
    Count(it->second.nodes, Line(mark));
    if (stack_.size() + static_cast<std::size_t>(it->second.depth) > kMaxYamlDepth) {
      throw Refusal{Line(mark), StrCat("nested deeper than ", kMaxYamlDepth)};
    }
    YamlNode copy = it->second.node;
    copy.line = Line(mark);
    Attach(std::move(copy));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = Make(YamlNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    CheckTag(tag, mark);
    Add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Level {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_name = false;  ///< in a map: the next node is the value of `name`
    std::string name;
    int name_line = 0;
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;
    int depth = 0;
  };

  static int Line(const YAML::Mark& mark) { return mark.line + 1; }

  static void CheckTag(const std::string& tag, const YAML::Mark& mark) {
    static constexpr std::string_view kKnown[] = {"",
                                                  "?",
                                                  "!",
                                                  "tag:yaml.org,2002:null",
                                                  "tag:yaml.org,2002:bool",
                                                  "tag:yaml.org,2002:int",
                                                  "tag:yaml.org,2002:float",
                                                  "tag:yaml.org,2002:str",
                                                  "tag:yaml.org,2002:seq",
                                                  "tag:yaml.org,2002:map"};
    if (std::find(std::begin(kKnown), std::end(kKnown), tag) != std::end(kKnown)) return;
    throw Refusal{Line(mark), StrCat("tag '", tag, "' is not supported")};
  }

  void Count(std::size_t more, int line) {
    nodes_ += more;
    if (nodes_ > kMaxYamlNodes) {
      throw Refusal{line, StrCat("more than ", kMaxYamlNodes, " values (aliases expanded)")};
    }
  }

  YamlNode Make(YamlNode::Kind kind, const YAML::Mark& mark) {
    Count(1, Line(mark));
    YamlNode node;
    node.kind = kind;
    node.line = Line(mark);
    node.source = source_;
    return node;
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    CheckTag(tag, mark);
    if (stack_.size() >= kMaxYamlDepth) {
      throw Refusal{Line(mark), StrCat("nested deeper than ", kMaxYamlDepth)};
    }
    if (!stack_.empty() && stack_.back().node.kind == YamlNode::Kind::kMap &&
        !stack_.back().has_name) {
      throw Refusal{Line(mark), "a key must be plain text"};
    }
    Level level;
    level.node = Make(kind, mark);
    level.anchor = anchor;
    stack_.push_back(std::move(level));
  }

  void Close() {
    Level level = std::move(stack_.back());
    stack_.pop_back();
    Add(std::move(level.node), level.anchor);
  }

  static std::pair<std::size_t, int> Measure(const YamlNode& node) {
    std::size_t nodes = 1;
    int depth = 0;
    const auto add = [&](const YamlNode& child) {
      const auto [child_nodes, child_depth] = Measure(child);
      nodes += child_nodes;
      depth = std::max(depth, child_depth);
    };
    for (const YamlNode& item : node.items) add(item);
    for (const YamlNode::Member& member : node.members) add(member.value);
    return {nodes, depth + 1};
  }

  void Add(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      const auto [nodes, depth] = Measure(node);
      Count(nodes, node.line);  // the copy that is kept for aliases
      anchors_[anchor] = Anchored{node, nodes, depth};
    }
    Attach(std::move(node));
  }

  void Attach(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& top = stack_.back();
    if (top.node.kind == YamlNode::Kind::kList) {
      top.node.items.push_back(std::move(node));
    } else if (!top.has_name) {
      SetName(top, node);
    } else {
      top.node.members.push_back({std::move(top.name), top.name_line, std::move(node)});
      top.has_name = false;
    }
  }

  static void SetName(Level& top, const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kScalar) throw Refusal{node.line, "a key must be plain text"};
    if (node.text == "<<") throw Refusal{node.line, "merge keys ('<<') are not supported"};
    if (top.node.members.size() >= kMaxYamlMapKeys) {
      throw Refusal{node.line, StrCat("more than ", kMaxYamlMapKeys, " keys in one map")};
    }
    if (top.node.Find(node.text) != nullptr) {
      throw Refusal{node.line, StrCat("key '", node.text, "' appears twice")};
    }
    top.name = node.text;
    top.name_line = node.line;
    top.has_name = true;
  }

  std::shared_ptr<const std::string> source_;
  std::vector<Level> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  YamlNode root_;
};

Status Malformed(std::string_view source, int line, std::string_view cause) {
  return InvalidArgument(source, ":", line, ": ", cause);
}

/// True when nesting by brackets or indentation could exhaust the parser's stack before a limit of
/// ours is asked: flow brackets are counted without regard to quotes, with room to spare.
bool BracketsTooDeep(std::string_view text) {
  constexpr int kMaxOpenBrackets = 400;
  int open = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') ++open;
    if ((c == ']' || c == '}') && open > 0) --open;
    if (open > kMaxOpenBrackets) return true;
  }
  return false;
}

/// InvalidArgument with the line of the first byte that is not UTF-8: yaml-cpp would replace it,
/// and a path would name no file. Text that begins as UTF-16 or UTF-32 is left to yaml-cpp.
Status CheckUtf8(std::string_view text, std::string_view source) {
  if (!text.empty() && (text[0] == '\xFE' || text[0] == '\xFF' || text[0] == '\0')) {
    return absl::OkStatus();
  }
  int line = 1;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) {
      const int byte = static_cast<unsigned char>(text[0]);
      return Malformed(source, line,
                       StrCat("byte ", byte, " is not UTF-8 here: save the file as UTF-8"));
    }
    line += text[0] == '\n' ? 1 : 0;
    text.remove_prefix(length);
  }
  return absl::OkStatus();
}

std::optional<Json> Number(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != '_') digits.push_back(c);
  }
  const char* begin = digits.c_str();
  const char* end = begin + digits.size();
  if (*begin == '+') ++begin;
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(begin, end, whole);
      error == std::errc() && at == end) {
    return Json(whole);
  }
  std::uint64_t large = 0;
  if (const auto [at, error] = std::from_chars(begin, end, large);
      error == std::errc() && at == end) {
    return Json(large);
  }
  const bool starts_like_number =
      begin != end &&
      (std::isdigit(static_cast<unsigned char>(*begin)) || *begin == '-' || *begin == '.');
  double real = 0;
  if (const auto [at, error] = std::from_chars(begin, end, real);
      starts_like_number && error == std::errc() && at == end && std::isfinite(real)) {
    return Json(real);
  }
  return std::nullopt;
}

Json ScalarToJson(const YamlNode& node) {
  if (node.quoted) return node.text;
  const std::string& text = node.text;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto number = Number(text)) return *std::move(number);
  return text;
}

constexpr std::string_view kTabsIndent = "tabs may not indent: use spaces";

/// Whether tabs stand before the text of a line, which is counted from 0.
bool IndentsWithTab(std::string_view text, int line) {
  for (; line > 0; --line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  const std::string_view blank = text.substr(0, text.find_first_not_of(" \t"));
  return blank.find('\t') != std::string_view::npos;
}

/// yaml-cpp's message for a common mistake, reworded.
std::string InPlainWords(const std::string& said) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"end of map flow not found", "'{' is not closed"},
      {"end of sequence flow not found", "'[' is not closed"},
      {"illegal tab when looking for indentation", kTabsIndent},
      {"end of map not found", "a key is indented differently from those before it"},
      {"end of sequence not found", "a list item is indented differently from those before it"},
      {"illegal block entry", "a list item is not allowed here: begin it on a line of its own"},
      {"illegal map value", "a value is not allowed here: quote text that contains ': '"},
      {"unknown token", "unexpected character; quote text that begins with it"},
  };
  for (const auto& [theirs, ours] : kWords) {
    if (said == theirs) return std::string(ours);
  }
  return said;
}

}  // namespace

const YamlNode* YamlNode::Find(std::string_view name) const {
  for (const Member& member : members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

std::string YamlNode::Where() const {
  const std::string name = source ? *source : "config";
  return line > 0 ? StrCat(name, ":", line) : name;
}

StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view source) {
  if (text.size() > kMaxYamlBytes) {
    return InvalidArgument("read config: ", source, ": ", text.size(), " bytes, more than ",
                           kMaxYamlBytes);
  }
  if (BracketsTooDeep(text)) {
    return InvalidArgument("read config: ", source, ": nested deeper than ", kMaxYamlDepth);
  }
  PB_RETURN_IF_ERROR(CheckUtf8(text, source));
  auto name = std::make_shared<const std::string>(source);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(name);
    if (!parser.HandleNextDocument(builder)) {
      YamlNode empty;
      empty.kind = YamlNode::Kind::kMap;
      empty.line = 1;
      empty.source = name;
      return empty;
    }
    TreeBuilder second(name);
    if (parser.HandleNextDocument(second)) {
      return Malformed(source, second.TakeRoot().line, "only one document is expected");
    }
    return builder.TakeRoot();
  } catch (const Refusal& refusal) {
    return Malformed(source, refusal.line, refusal.cause);
  } catch (const YAML::Exception& error) {
    // For a tab in the indentation, where only spaces are allowed, the parser reports the token
    // that is missing after it.
    if (error.msg.starts_with("illegal ") && IndentsWithTab(text, error.mark.line)) {
      return Malformed(source, error.mark.line + 1, kTabsIndent);
    }
    return Malformed(source, error.mark.line + 1, InPlainWords(error.msg));
  } catch (const std::exception& error) {
    return Malformed(source, 1, error.what());
  }
}

StatusOr<YamlNode> ReadYamlFile(const Folders& allowed, const std::string& path) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(allowed, path, kMaxYamlBytes));
  return ParseYaml(text, path);
}

YamlNode MergeYaml(YamlNode under, const YamlNode& over) {
  using Kind = YamlNode::Kind;
  if (under.kind != Kind::kMap || over.kind != Kind::kMap) return over;
  for (const YamlNode::Member& member : over.members) {
    const auto it = std::find_if(under.members.begin(), under.members.end(),
                                 [&](const auto& m) { return m.name == member.name; });
    const bool is_null = member.value.kind == Kind::kNull;
    if (it == under.members.end()) {
      if (!is_null) under.members.push_back(member);
    } else if (is_null) {
      under.members.erase(it);
    } else {
      it->line = member.line;
      it->value = MergeYaml(std::move(it->value), member.value);
    }
  }
  return under;
}

Json YamlToJson(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kScalar:
      return ScalarToJson(node);
    case YamlNode::Kind::kList: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(YamlToJson(item));
      return list;
    }
    case YamlNode::Kind::kMap: {
      Json map = Json::object();
      for (const YamlNode::Member& member : node.members) {
        map[member.name] = YamlToJson(member.value);
      }
      return map;
    }
  }
  return nullptr;
}

}  // namespace patchbay::config
