#include "runtime/format/json/described.h"

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"

namespace patchbay {

std::string JsonPlace::Path() const {
  if (around_ == nullptr) return "";
  const std::string before = around_->Path();
  if (key_.data() == nullptr) return StrCat(before, "[", index_, "]");
  return before.empty() ? std::string(key_) : StrCat(before, ".", key_);
}

Status JsonPlace::Wrong(std::string_view cause) const {
  if (around_ == nullptr) return ErrorAbout(absl::StatusCode::kInvalidArgument, "", what_, cause);
  return ErrorAbout(absl::StatusCode::kInvalidArgument, "", what_,
                    StrCat("key '", Path(), "': ", cause));
}

Status JsonPlace::Expected(std::string_view expected) const {
  return Wrong(StrCat("expected ", expected));
}

namespace json_fields {

Status OutOfRange(const JsonPlace& place, double min, double max) {
  return place.Expected(StrCat("a number in ", min, "..", max));
}

Status CheckRange(const Json& json, const JsonPlace& place, double min, double max) {
  if (json.is_array()) {  // a list, whose members may be lists too
    for (std::size_t i = 0; i < json.size(); ++i) {
      PB_RETURN_IF_ERROR(CheckRange(json[i], JsonPlace(place, i), min, max));
    }
  } else if (json.is_object()) {
    for (const auto& [key, member] : json.items()) {
      PB_RETURN_IF_ERROR(CheckRange(member, JsonPlace(place, std::string_view(key)), min, max));
    }
  }
  if (!json.is_number()) return absl::OkStatus();
  const auto number = json.get<double>();
  return number >= min && number <= max ? absl::OkStatus() : OutOfRange(place, min, max);
}

Status CheckCount(const Json& json, const JsonPlace& place, std::size_t min, std::size_t max) {
  if (!json.is_array() || (json.size() >= min && json.size() <= max)) return absl::OkStatus();
  return place.Expected(StrCat("a list of ", min, " to ", max));
}

Status CheckKeys(const Json& json, const JsonPlace& place, const char* const* known,
                 std::size_t count) {
  if (!json.is_object()) return place.Expected("an object");
  if (place.unknown() == UnknownKeys::kSkipped) return absl::OkStatus();
  for (const auto& [key, member] : json.items()) {
    bool is_known = false;
    for (std::size_t i = 0; i < count && !is_known; ++i) is_known = key == known[i];
    if (!is_known) return JsonPlace(place, std::string_view(key)).Wrong("unknown key");
  }
  return absl::OkStatus();
}

Status CheckList(const Json& json, const JsonPlace& place, std::optional<std::size_t> size) {
  if (!json.is_array()) return place.Expected("a list");
  if (!size || json.size() == *size) return absl::OkStatus();
  return place.Expected(StrCat("a list of ", *size));
}

Status Missing(const JsonPlace& place) { return place.Wrong("missing"); }

}  // namespace json_fields
}  // namespace patchbay
