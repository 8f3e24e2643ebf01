#include "scheduler/policy/join_terms.h"

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"

namespace patchbay::scheduler {
namespace {

/// The dotted name of the first key that differs; "" when none does.
std::string FirstDifference(const Json& one, const Json& other) {
  if (!one.is_object() || !other.is_object()) return "";
  for (const Json* keys : {&one, &other}) {
    for (const auto& [key, unused] : keys->items()) {
      const Json a = one.value(key, Json()), b = other.value(key, Json());
      if (a == b) continue;
      const std::string below = FirstDifference(a, b);
      return below.empty() ? key : StrCat(key, ".", below);
    }
  }
  return "";
}

/// A payload without the keys that do not describe the run itself.
Json RunOf(const std::string& payload) {
  StatusOr<Json> parsed = ParseJson(payload, "payload");
  if (!parsed.ok() || !parsed->is_object()) return Json::object();
  parsed->erase("cluster_numerics");
  return *std::move(parsed);
}

std::string NameOf(const Json& start) {
  return start.is_array() && start.size() == 2
             ? StrCat("epoch ", start[0].dump(), ", batch ", start[1].dump())
             : std::string("the beginning");
}

}  // namespace

Status CheckJoin(const protocol::SubmitJob& asked, const SubmittedRun& run) {
  const auto refuse = [&](std::string_view cause) {
    return FailedPrecondition("join stream '", asked.name, "': job ", run.job,
                              " has this name and runs ", cause);
  };
  if (asked.world_size != run.world_size) {
    return refuse(StrCat("for ", run.world_size, " ranks, not ", asked.world_size));
  }
  if (asked.manifest != run.manifest) return refuse("over another dataset");
  const Json one = RunOf(run.payload), other = RunOf(asked.root.payload);
  const std::string differs = FirstDifference(one, other);
  if (differs == "start") {
    return refuse(StrCat("from ", NameOf(one.value("start", Json())), ", not from ",
                         NameOf(other.value("start", Json()))));
  }
  if (!differs.empty()) return refuse(StrCat("with another config: key '", differs, "' differs"));
  return absl::OkStatus();
}

}  // namespace patchbay::scheduler
