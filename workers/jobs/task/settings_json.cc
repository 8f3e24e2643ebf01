#include "workers/jobs/task/settings_json.h"

#include <algorithm>
#include <utility>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

template <typename Value, typename Read>
Status ReadWhereGiven(const Json& payload, const char* key, std::string_view what, Read read,
                      Value& value) {
  if (!payload.contains(key)) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(value, read(payload, key, what));
  return absl::OkStatus();
}

}  // namespace

Status CheckSettingKeys(const Json& payload, std::span<const char* const> known,
                        std::string_view what) {
  if (!payload.is_object()) return absl::InvalidArgumentError(StrCat(what, ": not an object"));
  for (const auto& [key, value] : payload.items()) {
    if (std::none_of(known.begin(), known.end(), [&](const char* k) { return key == k; })) {
      return absl::InvalidArgumentError(StrCat(what, ": unknown key '", key, "'"));
    }
  }
  return absl::OkStatus();
}

Status ReadSetting(const Json& payload, const char* key, std::string_view what, bool& value) {
  return ReadWhereGiven(payload, key, what, &JsonBool, value);
}

Status ReadSetting(const Json& payload, const char* key, std::string_view what,
                   std::int64_t& value) {
  return ReadWhereGiven(payload, key, what, &JsonInt, value);
}

Status ReadSetting(const Json& payload, const char* key, std::string_view what,
                   std::string& value) {
  return ReadWhereGiven(payload, key, what, &JsonString, value);
}

Status ReadSetting(const Json& payload, const char* key, std::string_view what,
                   std::optional<double>& value) {
  if (payload.contains(key) && payload[key].is_null()) return absl::OkStatus();
  return ReadWhereGiven(payload, key, what, &JsonDouble, value);
}

}  // namespace patchbay::workers
