#include "runtime/cli/jobs/recorded_request.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/os/file.h"
#include "runtime/os/folder_listing.h"
#include "runtime/os/pid_stamp.h"

namespace patchbay::cli {
namespace {

constexpr char kRecordedRequest[] = "recorded request";

/// The work asked of the job, the same for every run of the command. The manifest holds a key, so
/// only its hash is kept.
std::string Asked(const SlideJobRequest& request) {
  JobManifest manifest = request.manifest;
  manifest.run = 0;
  manifest.command.reset();
  return Sha256Of(DumpJson({{"payload", request.payload}, {"manifest", JsonOf(manifest)}})).Hex();
}

struct Recorded {
  SlideJobRecord job;
  std::string asked;                ///< hash of payload and manifest
  std::optional<PidStamp> command;  ///< the one that recorded it; absent: not known

  static constexpr auto Fields() {
    using T = Recorded;
    return AsFullObject(Field("job", &T::job), Field("asked", &T::asked),
                        Field("command", &T::command));
  }
};

StatusOr<Recorded> Load(const std::string& file) {
  PB_ASSIGN_OR_RETURN(const std::string text, ReadFile(Folders::OfThisUser(), file, kMaxJsonBytes));
  PB_ASSIGN_OR_RETURN(const Json json, ParseJson(text, kRecordedRequest));
  return FromJson<Recorded>(json, kRecordedRequest);
}

/// Whether a command that has ended recorded the request of this job, and asked for the same.
bool IsLeftBehind(const std::string& file, const SlideJobRequest& request) {
  const StatusOr<Recorded> recorded = Load(file);
  if (!recorded.ok() || recorded->asked != Asked(request)) return false;
  return recorded->command && HasEnded(*recorded->command);
}

/// Outcomes of unfinished slides that one look reads: slides finish one after another.
constexpr int kMaxUnfinishedRead = 64;

}  // namespace

std::string RecordsFolder(const client::Environment& environment) {
  return environment.home + "/jobs";
}

std::string RecordPath(const client::Environment& environment, const protocol::JobRow& job) {
  return StrCat(RecordsFolder(environment), "/", job.job, "-", job.submitted_at, ".json");
}

std::vector<std::pair<std::string, std::vector<std::string>>> RecordsOfJobs(
    const client::Environment& environment) {
  std::vector<std::pair<std::string, std::vector<std::string>>> records;
  const auto names = ListFolder(Folders::OfThisUser(), RecordsFolder(environment));
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    const std::string file = StrCat(RecordsFolder(environment), "/", name);
    StatusOr<Recorded> recorded = Load(file);
    if (!recorded.ok()) continue;
    std::vector<std::string> paths = std::move(recorded->job.sources);
    paths.insert(paths.end(), recorded->job.slides.begin(), recorded->job.slides.end());
    for (const LabelRow& row : recorded->job.rows) {
      paths.insert(paths.end(), {row.store, row.file});
    }
    std::erase(paths, "");
    records.emplace_back(file, std::move(paths));
  }
  return records;
}

Status RecordRequest(const client::Environment& environment, const protocol::JobRow& job,
                     const SlideJobRequest& request) {
  PB_RETURN_IF_ERROR(MakeDirectories(Folders::OfThisUser(), RecordsFolder(environment), 0700));
  Recorded recorded{request, Asked(request), {}};
  if (const auto command = ThisPid(); command.ok()) recorded.command = *command;
  return ReplaceFile(Folders::OfThisUser(), RecordPath(environment, job),
                     AsBytes(DumpJson(JsonOf(recorded))), 0600);
}

std::optional<JobId> JobToJoin(const client::Environment& environment,
                               const std::vector<protocol::JobRow>& jobs,
                               const SlideJobRequest& request) {
  for (const protocol::JobRow& job : jobs) {
    if (job.kind != request.kind || client::HasEnded(job.state)) continue;
    if (!IsLeftBehind(RecordPath(environment, job), request)) continue;
    if (RecordRequest(environment, job, request).ok()) return job.job;
  }
  return std::nullopt;
}

std::optional<SlideJobRequest> RecordedRequest(const client::Environment& environment,
                                               const protocol::JobRow& job) {
  StatusOr<Recorded> recorded = Load(RecordPath(environment, job));
  if (!recorded.ok() || recorded->job.kind != job.kind) return std::nullopt;
  if (StagedKindOf(job.kind) == nullptr) return std::nullopt;
  SlideJobRequest request;
  static_cast<SlideJobRecord&>(request) = std::move(recorded->job);
  request.started_ns = SteadyNowNs();
  return request;
}

void SlidesDone::Look(const std::string& folder, const StagedJobKind& kind) {
  using Entries = std::filesystem::directory_iterator;
  std::error_code error;
  int unfinished = 0;
  for (auto it = Entries(folder, error); !error && it != Entries(); it.increment(error)) {
    if (it->path().extension() != ".json") continue;
    // "<slide>.json" or "<run>.<slide>.json": a slide counts once, whichever run finished it.
    const std::string stem = it->path().stem().string();
    const std::string slide = stem.substr(stem.rfind('.') + 1);
    if (slides_.contains(slide)) continue;
    if (kind.is_outcome == nullptr || kind.is_outcome(it->path().string())) {
      slides_.insert(slide);
    } else if (++unfinished == kMaxUnfinishedRead) {
      return;
    }
  }
}

std::string SlidesDone::Text(const SlideJobRequest& request) {
  std::error_code error;
  if (request.work.empty() || !std::filesystem::exists(request.work, error)) return seen_;
  for (const char* below : {"/slides", "/failures"}) {
    Look(request.work + below, *StagedKindOf(request.kind));
  }
  const auto done = static_cast<std::int64_t>(slides_.size());
  const auto slides = static_cast<std::int64_t>(request.plan.sources);
  done_ = std::max(done_, std::min(done, slides));
  seen_ = StrCat("slides ", done_, "/", slides);
  return seen_;
}

std::string SlidesDone::TextOfDone(const SlideJobRequest& request) {
  if (request.work.empty()) return seen_;
  done_ = static_cast<std::int64_t>(request.plan.sources);
  return seen_ = StrCat("slides ", done_, "/", done_);
}

}  // namespace patchbay::cli
