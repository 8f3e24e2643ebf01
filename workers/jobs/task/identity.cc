#include "workers/jobs/task/identity.h"

#include "runtime/base/hash.h"
#include "runtime/base/series_path.h"
#include "runtime/base/strings.h"

namespace patchbay::workers {

std::string PseudonymOf(const std::string& key, std::string_view kind, const std::string& value) {
  if (key.empty() || value.empty()) return "";
  return HmacSha256(AsBytes(key), StrCat(kind, "\n", value)).Hex().substr(0, kSeriesDigits);
}

Json IdentityOf(const std::string& key, const SourceIdentity& identity) {
  Json json = Json::object();
  const auto add = [&](const char* kind, const std::string& value) {
    const std::string pseudonym = PseudonymOf(key, kind, value);
    if (!pseudonym.empty()) json[kind] = pseudonym;
  };
  add("patient", identity.patient);
  add("study", identity.study);
  add("series", identity.series);
  add("frame_of_reference", identity.frame_of_reference);
  return json;
}

}  // namespace patchbay::workers
