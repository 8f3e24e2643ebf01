#include "runtime/cli/jobs/recorded_request.h"

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/pid_stamp.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr char kWhat[] = "recorded order";

std::string Folder(const client::Environment& environment) { return environment.home + "/jobs"; }

std::string File(const client::Environment& environment, const protocol::JobRow& job) {
  return StrCat(Folder(environment), "/", job.job, "-", job.submitted_at, ".json");
}

/// The work asked of the job, the same for every run of the command. The manifest holds a key, so
/// only its hash is kept.
std::string Asked(const SlideJobRequest& order) {
  Json manifest = order.manifest.is_object() ? order.manifest : Json::object();
  for (const char* of_the_run : {"run", "command"}) manifest.erase(of_the_run);
  return Sha256Of(DumpJson({{"payload", order.payload}, {"manifest", manifest}})).Hex();
}

/// Whether a command that has ended recorded the order of this job, and asked for the same.
bool IsLeftBehind(const std::string& file, const SlideJobRequest& order) {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), file, kMaxJsonBytes);
  if (!text.ok()) return false;
  const StatusOr<Json> json = ParseJson(*text, kWhat);
  if (!json.ok() || !json->is_object() || !json->contains("command")) return false;
  const StatusOr<std::string> asked = JsonString(*json, "asked", kWhat);
  const StatusOr<PidStamp> command = PidStampFromJson((*json)["command"]);
  return asked.ok() && *asked == Asked(order) && command.ok() && HasEnded(*command);
}

StatusOr<SlideJobRequest> Parse(const std::string& text) {
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  SlideJobRequest order;
  PB_ASSIGN_OR_RETURN(order.kind, JsonString(json, "kind", kWhat));
  PB_ASSIGN_OR_RETURN(order.staging, JsonString(json, "staging", kWhat));
  PB_ASSIGN_OR_RETURN(order.out, JsonString(json, "out", kWhat));
  for (const auto& [key, list] :
       {std::pair("sources", &order.sources), std::pair("slides", &order.slides)}) {
    PB_ASSIGN_OR_RETURN(const Json* paths, JsonMember(json, key, kWhat));
    for (const Json& path : *paths) {
      if (!path.is_string()) return absl::InvalidArgumentError(StrCat(kWhat, ": not paths"));
      list->push_back(path.get<std::string>());
    }
  }
  return order;
}

}  // namespace

Status RecordRequest(const client::Environment& environment, const protocol::JobRow& job,
                     const SlideJobRequest& order) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), Folder(environment), 0700));
  Json json = {{"kind", order.kind},       {"staging", order.staging}, {"out", order.out},
               {"sources", order.sources}, {"slides", order.slides},   {"asked", Asked(order)}};
  if (const auto command = ThisPid(); command.ok()) json["command"] = ToJson(*command);
  return ReplaceFile(Folders::OfThisUser(), File(environment, job), AsBytes(DumpJson(json)), 0600);
}

std::optional<JobId> JobToJoin(const client::Environment& environment,
                               const std::vector<protocol::JobRow>& jobs,
                               const SlideJobRequest& order) {
  for (const protocol::JobRow& job : jobs) {
    if (job.kind != order.kind || client::HasEnded(job.state)) continue;
    if (!IsLeftBehind(File(environment, job), order)) continue;
    if (RecordRequest(environment, job, order).ok()) return job.job;
  }
  return std::nullopt;
}

std::optional<SlideJobRequest> RecordedRequest(const client::Environment& environment,
                                               const protocol::JobRow& job) {
  const StatusOr<std::string> text =
      ReadFile(Folders::OfThisUser(), File(environment, job), kMaxJsonBytes);
  if (!text.ok()) return std::nullopt;
  StatusOr<SlideJobRequest> order = Parse(*text);
  if (!order.ok() || order->kind != job.kind) return std::nullopt;
  if (StagedKindOf(job.kind) == nullptr) return std::nullopt;
  order->started_ns = SteadyNowNs();
  return *std::move(order);
}

}  // namespace patchbay::cli
