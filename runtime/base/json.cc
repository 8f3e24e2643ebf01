#include "runtime/base/json.h"

#include "runtime/base/strings.h"

namespace patchbay {
namespace {

Status Wrong(std::string_view what, const char* key, std::string_view expected) {
  return absl::InvalidArgumentError(StrCat(what, ": key '", key, "': expected ", expected));
}

/// Follows nesting only, so that a hostile document is refused before it is built.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

StatusOr<Json> ParseJson(std::string_view text, std::string_view what, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return absl::InvalidArgumentError(
        StrCat("parse json: ", what, ": ", text.size(), " bytes, more than ", max_bytes));
  }
  if (TooDeep(text)) {
    return absl::InvalidArgumentError(
        StrCat("parse json: ", what, ": nested deeper than ", kMaxJsonDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(StrCat("parse json: ", what, ": ", error.what()));
  }
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<const Json*> JsonMember(const Json& object, const char* key, std::string_view what) {
  if (!object.is_object()) return Wrong(what, key, "an object around it");
  const auto it = object.find(key);
  if (it == object.end())
    return absl::InvalidArgumentError(StrCat(what, ": key '", key, "' is missing"));
  return &*it;
}

StatusOr<std::int64_t> JsonInt(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_number_integer()) return Wrong(what, key, "an integer");
  if (member->is_number_unsigned() && member->get<std::uint64_t>() > INT64_MAX)
    return Wrong(what, key, "a 63-bit integer");
  return member->get<std::int64_t>();
}

StatusOr<double> JsonDouble(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_number()) return Wrong(what, key, "a number");
  return member->get<double>();
}

StatusOr<bool> JsonBool(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_boolean()) return Wrong(what, key, "true or false");
  return member->get<bool>();
}

StatusOr<std::string> JsonString(const Json& object, const char* key, std::string_view what) {
  PB_ASSIGN_OR_RETURN(const Json* member, JsonMember(object, key, what));
  if (!member->is_string()) return Wrong(what, key, "a string");
  return member->get<std::string>();
}

}  // namespace patchbay
