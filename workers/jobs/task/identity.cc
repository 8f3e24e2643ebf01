#include "workers/jobs/task/identity.h"

#include <utility>

namespace patchbay::workers {

Json IdentityOf(const std::string& key, const SourceIdentity& identity) {
  Json json = Json::object();
  const auto add = [&](const char* kind, const std::string& value) {
    const std::string pseudonym = PseudonymOf(key, kind, value);
    if (!pseudonym.empty()) json[kind] = pseudonym;
  };
  add("patient", identity.patient);
  add("study", identity.study);
  add("series", identity.series);
  Json frames = Json::array();
  for (const std::string& frame : identity.frames_of_reference) {
    const std::string pseudonym = PseudonymOf(key, "frame_of_reference", frame);
    if (!pseudonym.empty()) frames.push_back(pseudonym);
  }
  if (frames.size() == 1) {
    json["frame_of_reference"] = frames[0];
  } else if (!frames.empty()) {
    json["frame_of_reference"] = std::move(frames);
  }
  return json;
}

}  // namespace patchbay::workers
