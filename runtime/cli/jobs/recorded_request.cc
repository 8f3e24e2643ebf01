#include "runtime/cli/jobs/recorded_request.h"

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
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

struct Recorded {
  SlideJobRecord job;
  std::string asked;  ///< Asked
  Json command;       ///< PidStamp of the command that recorded it; null: not known

  static constexpr auto Fields() {
    return AsObject(Field("job", &Recorded::job).Required(),
                    Field("asked", &Recorded::asked).Required(),
                    Field("command", &Recorded::command).Required());
  }
};

StatusOr<Recorded> Load(const std::string& file) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(Folders::OfThisUser(), file, kMaxJsonBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kWhat));
  return FromJson<Recorded>(json, kWhat);
}

/// Whether a command that has ended recorded the order of this job, and asked for the same.
bool IsLeftBehind(const std::string& file, const SlideJobRequest& order) {
  const StatusOr<Recorded> recorded = Load(file);
  if (!recorded.ok() || recorded->asked != Asked(order)) return false;
  const StatusOr<PidStamp> command = PidStampFromJson(recorded->command);
  return command.ok() && HasEnded(*command);
}

}  // namespace

Status RecordRequest(const client::Environment& environment, const protocol::JobRow& job,
                     const SlideJobRequest& order) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), Folder(environment), 0700));
  Recorded recorded{order, Asked(order), Json()};
  if (const auto command = ThisPid(); command.ok()) recorded.command = ToJson(*command);
  return ReplaceFile(Folders::OfThisUser(), File(environment, job),
                     AsBytes(DumpJson(JsonOf(recorded))), 0600);
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
  StatusOr<Recorded> recorded = Load(File(environment, job));
  if (!recorded.ok() || recorded->job.kind != job.kind) return std::nullopt;
  if (StagedKindOf(job.kind) == nullptr) return std::nullopt;
  SlideJobRequest order;
  static_cast<SlideJobRecord&>(order) = std::move(recorded->job);
  order.started_ns = SteadyNowNs();
  return order;
}

}  // namespace patchbay::cli
