#include "runtime/format/json/json_stream.h"

#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_error.h"

namespace patchbay {
namespace {

/// Carries an error out of the parser.
struct Stopped {
  Status status;
};

/// Cuts text that is known to be JSON. Values end where their brackets or quotes do.
class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  /// The next character that is no space, which stays.
  char Next() {
    while (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')
      ++at_;
    return text_[at_];
  }
  void Skip() { ++at_; }

  std::string_view Value() {
    Next();
    const std::size_t begin = at_;
    int depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        SkipText();
        continue;
      }
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
      ++at_;
    } while (depth > 0 || IsInScalar(begin));
    return text_.substr(begin, at_ - begin);
  }

 private:
  void SkipText() {
    for (++at_; text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    ++at_;
  }

  /// Whether a number or name that began at `begin` goes on.
  bool IsInScalar(std::size_t begin) const {
    constexpr std::string_view kNoScalar = "\"[{", kEnds = ",]} \t\n\r";
    return kNoScalar.find(text_[begin]) == std::string_view::npos && at_ < text_.size() &&
           kEnds.find(text_[at_]) == std::string_view::npos;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Refuses what ParseJson does, and other values than those that begin with `bracket`.
Status CheckJson(std::string_view text, std::string_view what, char bracket,
                 std::string_view expected) {
  const bool is_json = text.size() <= kMaxJsonBytes && !TooDeep(text) && Json::accept(text);
  if (!is_json) PB_RETURN_IF_ERROR(ParseJson(text, what).status());
  if (Cutter(text).Next() == bracket) return absl::OkStatus();
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "", what, StrCat("expected ", expected));
}

}  // namespace

StatusOr<Json> ParseJsonTaking(std::string_view text, std::string_view what,
                               const TakeObject& take) {
  const auto see = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxJsonDepth) {
      throw Stopped{ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                               StrCat("nested deeper than ", kMaxJsonDepth))};
    }
    if (event != Json::parse_event_t::object_end) return true;
    const StatusOr<bool> taken = take(value);
    if (!taken.ok()) throw Stopped{taken.status()};
    if (*taken) value = nullptr;
    return true;
  };
  try {
    return Json::parse(text, see);
  } catch (const Stopped& stopped) {
    return stopped.status;
  } catch (const Json::exception& error) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                      JsonFaultOf(text, error));
  }
}

StatusOr<JsonMembers> MembersOfJson(std::string_view text, std::string_view what) {
  PB_RETURN_IF_ERROR(CheckJson(text, what, '{', "an object"));
  JsonMembers members;
  Cutter cutter(text);
  cutter.Next();
  cutter.Skip();
  while (cutter.Next() != '}') {
    PB_ASSIGN_OR_RETURN(const Json key, ParseJson(cutter.Value(), what));
    cutter.Next();
    cutter.Skip();  // the colon
    members[key.get<std::string>()] = cutter.Value();
    if (cutter.Next() == ',') cutter.Skip();
  }
  return members;
}

StatusOr<std::vector<std::string_view>> ElementsOfJson(std::string_view text,
                                                       std::string_view what) {
  PB_RETURN_IF_ERROR(CheckJson(text, what, '[', "an array"));
  std::vector<std::string_view> elements;
  Cutter cutter(text);
  cutter.Next();
  cutter.Skip();
  while (cutter.Next() != ']') {
    elements.push_back(cutter.Value());
    if (cutter.Next() == ',') cutter.Skip();
  }
  return elements;
}

std::string JoinMembers(const std::map<std::string, std::string>& members) {
  std::size_t size = 2;
  for (const auto& [key, text] : members) size += key.size() + text.size() + 4;
  std::string out;
  out.reserve(size);
  for (const auto& [key, text] : members) {
    out += out.empty() ? "{" : ",";
    out += DumpJson(key);
    out += ':';
    out += text;
  }
  return out.empty() ? "{}" : out + "}";
}

}  // namespace patchbay
