// patchbay ingest SOURCE... --out DIR: slides to stores.
#include <algorithm>
#include <filesystem>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/ingest_report.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/job_view.h"
#include "runtime/cli/paths.h"
#include "runtime/cli/pseudonym_key.h"
#include "runtime/cli/store_sources.h"

namespace patchbay::cli {
namespace {

constexpr TimeMs kCancelLimitMs = 10'000;
constexpr std::size_t kMaxSlidesNamed = 100'000;
constexpr char kStagingName[] = ".patchbay-ingest";

/// What a job needs to be submitted, resolved from the arguments.
struct IngestOrder {
  std::vector<std::string> sources;
  std::string out;
  Json payload, manifest;
  /// Files in the order of the job's slide numbers. Known at once when no source is a folder, else
  /// when the job has listed them.
  std::vector<std::string> slides;
};

class IngestCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<IngestOrder> Order(const Session& session) const;
  StatusOr<protocol::JobRow> Watch(Session& session, ClusterAccess& cluster, JobId job,
                                   IngestOrder& order) const;
  StatusOr<IngestReport> Report(client::Client& client, const protocol::JobRow& job,
                                const IngestOrder& order) const;

  std::vector<std::string> sources_;
  std::string out_;
  std::int64_t chunk_ = 512, shard_ = 4096;
  std::string codec_ = "zstd";
  std::int64_t codec_level_ = 5;
  std::optional<double> mpp_;
  bool keep_names_ = false, detach_ = false;
  OwnClusterArguments own_;
};

std::vector<Argument> IngestCommand::Arguments() {
  Argument chunk{"--chunk", "PX", "side of a chunk (default 512)", &chunk_};
  Argument shard{"--shard", "PX", "side of a file, a multiple of --chunk (default 4096)", &shard_};
  chunk.min = shard.min = 1;
  Argument codec{"--codec", "", "small (zstd) or fast (lz4); default zstd", &codec_};
  codec.choices = {"zstd", "lz4"};
  Argument level{"--codec-level", "N", "1 to 9, larger is smaller and slower (default 5)",
                 &codec_level_};
  level.min = 1;
  level.max = 9;
  Argument mpp{"--mpp", "M", "start at this many um per pixel (default: the slide's)", &mpp_};
  mpp.min = 1e-3;
  std::vector<Argument> arguments = {
      {"SOURCE", "", "slides, or folders of slides", &sources_, true},
      {"--out", "DIR", "the folder for the stores", &out_, true},
      chunk,
      shard,
      codec,
      level,
      mpp,
      {"--keep-names", "", "name stores after their files, not by pseudonym", &keep_names_},
      {"--detach", "", "do not wait: print the job's number", &detach_}};
  own_.AddTo(arguments);
  return arguments;
}

StatusOr<IngestOrder> IngestCommand::Order(const Session& session) const {
  if (shard_ % chunk_ != 0) {
    return UsageError(StrCat("--shard ", shard_, " is not a multiple of --chunk ", chunk_));
  }
  IngestOrder order;
  PB_ASSIGN_OR_RETURN(order.out, AbsolutePath(out_));
  bool files_only = true;
  for (const std::string& source : sources_) {
    PB_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(source));
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return absl::NotFoundError(StrCat("ingest: ", source, ": no such file or folder"));
    }
    files_only = files_only && !std::filesystem::is_directory(path, error);
    order.sources.push_back(path);
  }
  std::sort(order.sources.begin(), order.sources.end());
  order.sources.erase(std::unique(order.sources.begin(), order.sources.end()), order.sources.end());
  if (files_only) order.slides = order.sources;
  order.payload = {{"chunk", chunk_},
                   {"shard", shard_},
                   {"codec", codec_},
                   {"codec_level", codec_level_},
                   {"mpp", mpp_.has_value() ? Json(*mpp_) : Json()},
                   {"keep_names", keep_names_}};
  order.manifest = {{"sources", order.sources}, {"out", order.out}};
  if (!keep_names_) {
    PB_ASSIGN_OR_RETURN(order.manifest["pseudonym_key"], PseudonymKey(session.environment));
  }
  return order;
}

/// Cancels and waits until nothing of the job writes any more.
Status CancelAndWait(client::Client& client, JobId job) {
  PB_RETURN_IF_ERROR(client.CancelJob(job));
  const TimeMs deadline = SteadyClock().NowMs() + kCancelLimitMs;
  return client.Wait(job, {}, [deadline] { return SteadyClock().NowMs() < deadline; }).status();
}

/// Reads the list of slides that the job wrote down below `out`; leaves it empty when it is not
/// there to be read (another machine's folder): slides are called by number then.
void LearnSlides(client::Client& client, JobId job, IngestOrder& order) {
  const StatusOr<protocol::ResultFetched> plan = client.FetchResult({job, 0});
  if (!plan.ok() || plan->state != protocol::TaskState::kDone) return;
  const StatusOr<Json> result = ParseJson(plan->result, "ingest plan");
  if (!result.ok()) return;
  const StatusOr<std::string> key = JsonString(*result, "job_key", "ingest plan");
  if (!key.ok()) return;
  const StatusOr<std::string> text =
      ReadFile(StrCat(order.out, "/", kStagingName, "/", *key, "/manifest.json"), kMaxJsonBytes);
  if (!text.ok()) return;
  const StatusOr<Json> manifest = ParseJson(*text, "ingest manifest");
  if (!manifest.ok() || !manifest->is_object() || !manifest->contains("sources")) return;
  for (const Json& source : (*manifest)["sources"]) {
    if (source.is_string()) order.slides.push_back(source.get<std::string>());
  }
}

StatusOr<protocol::JobRow> IngestCommand::Watch(Session& session, ClusterAccess& cluster, JobId job,
                                                IngestOrder& order) const {
  JobProgress progress(session.terminal);
  const auto watch = [&](const protocol::JobRow& seen) {
    progress.Show(seen);
    if (order.slides.empty() && seen.tasks_done > 0) LearnSlides(cluster.client(), job, order);
  };
  StatusOr<protocol::JobRow> row = cluster.client().Wait(job, watch, [] { return !Interrupted(); });
  session.terminal.EndProgress();
  if (row.ok()) return row;
  if (!Interrupted()) return cluster.Explain(row.status());
  if (!cluster.embedded()) {
    return absl::CancelledError(StrCat("interrupted: job ", job, " goes on in the cluster; see ",
                                       "`patchbay wait ", job, "`, `patchbay cancel ", job, "`"));
  }
  (void)CancelAndWait(cluster.client(), job);
  return absl::CancelledError(StrCat("interrupted: what is unfinished stays in ", order.out, "/",
                                     kStagingName, "; the same command goes on from there"));
}

/// The result of a task as JSON; one too large to travel is a file, which has then served.
StatusOr<Json> ResultOf(client::Client& client, TaskId task) {
  PB_ASSIGN_OR_RETURN(std::string text, client.WaitForResult(task, [] { return !Interrupted(); }));
  PB_ASSIGN_OR_RETURN(Json result, ParseJson(text, "ingest result"));
  if (!result.is_object() || !result.contains("result_file")) return result;
  PB_ASSIGN_OR_RETURN(const std::string path, JsonString(result, "result_file", "ingest result"));
  PB_ASSIGN_OR_RETURN(text, ReadFile(path, kMaxJsonBytes));
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return ParseJson(text, "ingest result");
}

/// The slides of a job that ended before its list was read: then all of them have stores, and the
/// folder says what each was made from.
std::vector<std::string> SlidesOfStores(const Json& summary, const std::string& out) {
  const std::map<std::string, std::string> sources = ReadStoreSources(out);
  std::vector<std::string> slides;
  for (const Json& store : summary.value("stores", Json::array())) {
    const auto source = sources.find(store.value("name", ""));
    const auto index = store.value("source_index", std::size_t{0});
    if (source == sources.end() || index > kMaxSlidesNamed) continue;
    if (slides.size() <= index) slides.resize(index + 1);
    slides[index] = source->second;
  }
  return slides;
}

StatusOr<IngestReport> IngestCommand::Report(client::Client& client, const protocol::JobRow& job,
                                             const IngestOrder& order) const {
  PB_ASSIGN_OR_RETURN(const Json plan, ResultOf(client, {job.job, 0}));
  PB_ASSIGN_OR_RETURN(const std::int64_t index, JsonInt(plan, "summary_task", "ingest plan"));
  PB_ASSIGN_OR_RETURN(const Json summary,
                      ResultOf(client, {job.job, static_cast<std::uint32_t>(index)}));
  const std::vector<std::string> slides =
      order.slides.empty() ? SlidesOfStores(summary, order.out) : order.slides;
  PB_ASSIGN_OR_RETURN(IngestReport report, MakeIngestReport(job, summary, slides));
  report.out = order.out;
  return report;
}

/// Why a job has no report, in one text.
Status JobFailure(const protocol::JobRow& job, const std::string& out) {
  std::string reasons;
  for (const protocol::FailedTask& task : job.failed) {
    reasons += StrCat(reasons.empty() ? "" : "; ", task.outcome.message);
  }
  return absl::InternalError(StrCat("ingest into ", out, ": ", JobStateName(job.state),
                                    reasons.empty() ? "" : ": ", reasons));
}

StatusOr<ExitCode> IngestCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(IngestOrder order, Order(session));
  const std::int64_t started_ns = SteadyNowNs();
  PB_ASSIGN_OR_RETURN(ClusterAccess cluster,
                      ClusterAccess::Open(session, detach_ ? nullptr : &own_));
  protocol::SubmitJob submission;
  submission.kind = "ingest";
  submission.name = StrCat("ingest of ", order.sources.size(), " sources");
  submission.root.op = "ingest.plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson(order.payload);
  submission.manifest = DumpJson(order.manifest);
  const StatusOr<JobId> submitted = cluster.client().SubmitJob(std::move(submission));
  if (!submitted.ok()) return cluster.Explain(submitted.status());
  const JobId job = *submitted;
  if (detach_) {
    session.terminal.Say(StrCat("job ", job));
    session.terminal.Result({{"job", job}});
    return ExitCode::kDone;
  }
  PB_ASSIGN_OR_RETURN(const protocol::JobRow row, Watch(session, cluster, job, order));
  StatusOr<IngestReport> report = Report(cluster.client(), row, order);
  if (!report.ok()) {
    return row.failed.empty() ? cluster.Explain(report.status()) : JobFailure(row, order.out);
  }
  report->seconds = static_cast<double>(SteadyNowNs() - started_ns) * 1e-9;
  const Status listed = WriteFailedCsv(*report);
  SayIngestReport(session.terminal, *report);
  session.terminal.Result(ToJson(*report));
  PB_RETURN_IF_ERROR(listed);
  return report->failed.empty() ? ExitOf(row) : ExitCode::kSomeFailed;
}

}  // namespace

const char kIngestNote[] =
    "Exit code 3: some slides failed, the others are stored; DIR/failed.csv says which and why.\n"
    "Label and macro images are never opened. A store appears when it is complete and durable;\n"
    "killed or interrupted, the same command goes on where it was.\n";

std::unique_ptr<Command> MakeIngest() { return std::make_unique<IngestCommand>(); }

}  // namespace patchbay::cli
