#include "runtime/format/json/outcome_json.h"

#include <string>

namespace patchbay {
namespace {

constexpr std::string_view kWhat = "outcome";

StatusOr<Subject> SubjectFromJson(const Json& json) {
  Subject subject;
  PB_ASSIGN_OR_RETURN(const std::string name, JsonString(json, "kind", kWhat));
  PB_ASSIGN_OR_RETURN(subject.index, JsonCount(json, "index", kWhat));
  if (json.contains("part")) {
    PB_ASSIGN_OR_RETURN(subject.part, JsonString(json, "part", kWhat));
  }
  for (int kind = 0; kind <= static_cast<int>(SubjectKind::kPeer); ++kind) {
    subject.kind = static_cast<SubjectKind>(kind);
    if (NameOf(subject.kind) == name) return subject;
  }
  return absl::InvalidArgumentError(StrCat(kWhat, ": key 'kind': unknown: ", name));
}

}  // namespace

Json ToJson(const Subject& subject) {
  Json json = {{"kind", NameOf(subject.kind)}, {"index", subject.index}};
  if (!subject.part.empty()) json["part"] = subject.part;
  return json;
}

Json ToJson(const Outcome& outcome) {
  Json json = {{"code", outcome.code}};
  const auto put = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  put("doing", outcome.doing);
  put("cause", outcome.cause);
  put("advice", outcome.advice);
  if (outcome.subject != Subject{}) json["subject"] = ToJson(outcome.subject);
  for (const Subject& other : outcome.others) json["others"].push_back(ToJson(other));
  return json;
}

StatusOr<Outcome> OutcomeFromJson(const Json& json) {
  Outcome outcome;
  PB_ASSIGN_OR_RETURN(const std::int64_t code, JsonInt(json, "code", kWhat));
  outcome.code = static_cast<std::int32_t>(code);
  outcome.doing = json.value("doing", "");
  outcome.cause = json.value("cause", "");
  outcome.advice = json.value("advice", "");
  if (json.contains("subject")) {
    PB_ASSIGN_OR_RETURN(outcome.subject, SubjectFromJson(json["subject"]));
  }
  for (const Json& other : json.value("others", Json::array())) {
    PB_ASSIGN_OR_RETURN(outcome.others.emplace_back(), SubjectFromJson(other));
  }
  return outcome;
}

}  // namespace patchbay
