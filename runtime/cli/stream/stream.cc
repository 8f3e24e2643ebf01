// patchbay stream RUN.yaml: attaches as a trainer and takes batches, as fast as possible or with a
// simulated training step.
#include "runtime/client/stream.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/overwriting.h"
#include "runtime/cli/progress_lines.h"
#include "runtime/cli/stream/batch_files.h"
#include "runtime/cli/stream/peak_memory.h"
#include "runtime/cli/stream/position_file.h"
#include "runtime/cli/stream/run_arguments.h"
#include "runtime/cli/stream/run_reports.h"
#include "runtime/client/open_run.h"
#include "runtime/client/paths.h"
#include "runtime/client/resume_token.h"
#include "runtime/client/stream_breakdown.h"
#include "runtime/client/stream_digest.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/model/stream/limits.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kNextSliceMs = 200;  ///< between looks for Ctrl-C
constexpr std::int64_t kLookAtLogNs = 3'000'000'000;
constexpr std::int64_t kLineEveryNs = 30'000'000'000;
constexpr std::int64_t kPositionEveryNs = 5'000'000'000;  ///< the batches that a kill can cost

/// Result of a stream.
struct StreamResult {
  client::StreamStats stats;
  std::uint64_t batches_per_epoch = 0, ring_bytes = 0;
  std::string plan_digest, digest, resume_token;
  JobId job = 0;
  std::size_t workers = 0;
  results::SkippedImages skipped;
  std::map<std::string, std::uint64_t> peak_rss_bytes;
  RealisedCounts counted;
  Json counts;
  bool stopped = false;  ///< by a signal, or with its cluster
};

Json ToJson(const std::array<client::StageShare, 5>& breakdown) {
  Json json = Json::object();
  for (const client::StageShare& stage : breakdown) {
    json[std::string(stage.name)] = {{"fraction", stage.fraction},
                                     {"s_per_batch", stage.s_per_batch}};
  }
  return json;
}

Json ToJson(const StreamResult& result) {
  const client::StreamStats& stats = result.stats;
  const double seconds = std::max(stats.wall_s, 1e-9);
  Json json = {{"job", result.job},
               {"batches", stats.batches},
               {"patches", stats.patches},
               {"seconds", stats.wall_s},
               {"patches_per_s", static_cast<double>(stats.patches) / seconds},
               {"bytes_per_s", static_cast<double>(stats.bytes) / seconds},
               {"stall_fraction", stats.stall_fraction},
               {"wait_p50_s", stats.wait_p50_s},
               {"wait_p99_s", stats.wait_p99_s},
               {"first_batch_s", stats.first_batch_s},
               {"breakdown", ToJson(client::BreakdownOf(stats))},
               {"workers", result.workers},
               {"batches_per_epoch", result.batches_per_epoch},
               {"ring_bytes", result.ring_bytes},
               {"remote_bytes", stats.remote_bytes},
               {"shards_refused", stats.shards_refused},
               {"connections_dropped", stats.connections_dropped},
               {"plan_digest", result.plan_digest},
               {"resume_token", result.resume_token},
               {"skipped_files", result.skipped.files},
               {"skipped", cli::ToJson(result.skipped)},
               {"peak_rss_bytes", result.peak_rss_bytes}};
  if (!result.digest.empty()) json["digest"] = result.digest;
  json["counts"] = result.counts;
  return json;
}

/// Prints counts of sites and classes. Slides, which may be thousands, are only in the JSON.
void SayCounts(Terminal& terminal, const Json& counts) {
  for (const char* kind : {"sites", "classes"}) {
    std::vector<std::string> named;
    const Json patches = counts.value(kind, Json::object());
    for (const auto& [name, count] : patches.items()) {
      named.push_back(StrCat(name, " ", count.get<std::uint64_t>()));
    }
    if (named.empty()) continue;
    std::string left = StrCat(kind);
    left.resize(16, ' ');
    terminal.Say(left + StrJoin(named, ", "));
  }
}

/// Prints the shares of the time, and the workers' time for a batch.
void SayBreakdown(Terminal& terminal, const std::array<client::StageShare, 5>& breakdown) {
  std::vector<std::string> shares, means;
  for (const client::StageShare& stage : breakdown) {
    shares.push_back(StrCat(stage.name, " ", Fixed(100 * stage.fraction, 1), " %"));
    means.push_back(StrCat(stage.name, " ", Fixed(1e3 * stage.s_per_batch, 2), " ms"));
  }
  terminal.Say(StrCat("time            ", StrJoin(shares, ", "), " (from batch 2 on)"));
  terminal.Say(StrCat("a batch         ", StrJoin(means, ", "), " (stages: all workers together)"));
}

void SayResult(Terminal& terminal, const StreamResult& result) {
  const client::StreamStats& stats = result.stats;
  const double seconds = std::max(stats.wall_s, 1e-9);
  terminal.Say(StrCat("batches         ", stats.batches, " (", result.batches_per_epoch,
                      " an epoch), ", Counted(stats.patches, "patch", "patches"), " in ",
                      HumanSeconds(seconds)));
  terminal.Say(StrCat(
      "throughput      ", Fixed(static_cast<double>(stats.patches) / seconds, 1), " patches/s, ",
      HumanBytes(static_cast<std::uint64_t>(static_cast<double>(stats.bytes) / seconds)), "/s"));
  terminal.Say(StrCat("stall fraction  ", Fixed(100 * stats.stall_fraction, 2),
                      " % (waiting, from batch 2 on; p99 ", Fixed(1e3 * stats.wait_p99_s, 2),
                      " ms a batch)"));
  SayBreakdown(terminal, client::BreakdownOf(stats));
  std::vector<std::string> peaks;
  for (const auto& [name, bytes] : result.peak_rss_bytes) {
    peaks.push_back(StrCat(name, " ", HumanBytes(bytes)));
  }
  terminal.Say(StrCat("peak memory     ", StrJoin(peaks, ", ")));
  terminal.Say(StrCat("plan            ", result.plan_digest));
  terminal.Say(StrCat("resume token    ", result.resume_token));
  SayCounts(terminal, result.counts);
  if (!result.digest.empty()) terminal.Say(StrCat("digest          ", result.digest));
}

/// The progress of planning: the root task, the task of the plan, and between them a weight of one
/// per image.
std::string PlanningProgress(const protocol::JobRow& row) {
  if (row.tasks_total < 2) return "planning: looking for images";
  const std::uint64_t beside = 2;
  const std::uint64_t images = std::max(row.weight_total, beside) - beside;
  const std::uint64_t done = row.weight_done == 0 ? 0 : row.weight_done - 1;
  return StrCat("planning: ", std::min(done, images), " of ", Counted(images, "image"));
}

class StreamCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<std::unique_ptr<client::Run>> Open(const Session& session);
  Status TakeBatches(Session& session, client::Run& run, StreamResult& result);
  Status Use(const client::Batch& batch, client::StreamDigest& digest) const;
  std::uint64_t WantedBatches(const client::Stream& stream) const;
  Status CheckDiskSpace(const client::Stream& stream) const;
  StatusOr<StreamResult> Consume(Session& session, client::Run& run);
  Status ReadStart(Terminal& terminal);
  Status KeepPosition(const client::Stream& stream);
  std::string HowToGoOn() const;
  StatusOr<Json> CountsOf(const client::Run& run, const RealisedCounts& counted) const;

  std::string path_, split_, save_, data_policy_, data_listen_, name_, resume_;
  std::string position_file_;
  std::vector<std::string> set_;
  std::int64_t epoch_ = 0, rank_ = 0, world_size_ = 1;
  std::optional<std::int64_t> job_;
  std::optional<std::int64_t> batches_;
  std::int64_t step_ms_ = 0, wait_s_ = 3'600;
  bool digest_ = false, force_ = false;
  std::optional<BatchFolder> saved_;  ///< with --save
  Json splits_;                       ///< ReportSplits
  std::string position_;              ///< after the last batch that was used, as a resume token
  std::uint64_t before_ = 0;          ///< batches that earlier starts took, by position_file_
  std::uint64_t used_ = 0;            ///< and by this one
  std::int64_t kept_ns_ = 0;          ///< when position_file_ was written
  OwnClusterArguments own_;
};

std::vector<Argument> StreamCommand::Arguments() {
  Argument epoch{"--epoch", "E", "the epoch to start with (default 0)", &epoch_};
  epoch.min = 0;
  epoch.max = 65535;
  Argument batches{"--batches", "N", "how many batches, across epochs (default: one epoch)",
                   &batches_};
  batches.min = 1;
  Argument step{"--step-ms", "T", "simulate a training step of T ms per batch", &step_ms_};
  step.min = 0;
  step.max = 3'600'000;
  Argument wait{"--wait", "S",
                "wait while the team has all streams it may (default 3600 s; 0: refused)",
                &wait_s_};
  wait.min = 0;
  wait.max = 30 * 86'400;
  Argument world{"--world-size", "W", "ranks that share every batch (default 1)", &world_size_};
  world.min = 1;
  world.max = kMaxWorldSize;
  Argument rank{"--rank", "R", "rank of this process, from 0 (default 0)", &rank_};
  rank.min = 0;
  rank.max = kMaxWorldSize - 1;
  Argument job{"--job", "ID", "attach to a stream job submitted earlier", &job_};
  job.min = 1;
  std::vector<Argument> arguments = {
      {"RUN.yaml", "", "the run config", &path_, true},
      SetArgument(set_),
      SplitArgument(split_),
      world,
      rank,
      {"--name", "NAME", "ranks that use the same name form one run", &name_},
      job,
      {"--resume", "TOKEN", "continue from the resume_token of an earlier result", &resume_},
      {"--position", "FILE", "keep the position there; the next start goes on from it",
       &position_file_},
      epoch,
      batches,
      step,
      wait,
      {"--digest", "", "print the SHA-256 of all patches, in order (slower)", &digest_},
      {"--save", "DIR", "write every batch, one .npy file per array", &save_},
      {"--force", "", "let --save write among earlier batches, or where room is short", &force_},
      PolicyArgument(data_policy_),
      {"--data-listen", "IP", "address other nodes connect to (default: the cluster's)",
       &data_listen_}};
  own_.AddTo(arguments);
  return arguments;
}

StatusOr<std::unique_ptr<client::Run>> StreamCommand::Open(const Session& session) {
  client::RunOptions options;
  options.source.file = path_;
  options.source.overrides = set_;
  options.split = split_;
  options.cluster = ClusterOptionsOf(session, &own_);
  options.rank = static_cast<std::uint32_t>(rank_);
  options.world_size = static_cast<std::uint32_t>(world_size_);
  options.name = name_;
  options.job = static_cast<JobId>(job_.value_or(0));
  options.resume_token = resume_;
  options.epoch = static_cast<std::uint32_t>(epoch_);
  options.data_policy = data_policy_;
  options.data_listen = data_listen_;
  options.wait_s = wait_s_;
  options.priority = static_cast<std::int32_t>(own_.priority);
  options.leave_when_stopping = !position_file_.empty();
  Terminal& terminal = session.terminal;
  options.watch = [&terminal](const protocol::JobRow& row) {
    if (terminal.live()) terminal.Progress(PlanningProgress(row));
  };
  StatusOr<std::unique_ptr<client::Run>> run = client::OpenRun(options);
  terminal.EndProgress();
  if (absl::IsFailedPrecondition(run.status()) && !position_file_.empty() && !resume_.empty()) {
    return Annotate(run.status(), StrCat("go on from ", position_file_));
  }
  if (!run.ok()) return run;
  ReportSkipped(terminal, (*run)->skipped);
  for (const std::string& notice : (*run)->file.notices) terminal.Note(notice);
  if (const std::size_t others = (*run)->file.unlocked_rows; others != 0) {
    terminal.Note(
        StrCat("rows left out        ", others,
               " of the table that are not in the run's lock (`patchbay lock --update`)"));
  }
  splits_ = ReportSplits(terminal, (*run)->file);
  return run;
}

/// Batches of this start.
std::uint64_t StreamCommand::WantedBatches(const client::Stream& stream) const {
  const std::uint64_t wanted =
      batches_.has_value() ? static_cast<std::uint64_t>(*batches_) : stream.batches_per_epoch();
  return wanted - std::min(wanted, before_);
}

/// The start that --position names, instead of --resume and --epoch.
Status StreamCommand::ReadStart(Terminal& terminal) {
  if (position_file_.empty()) return absl::OkStatus();
  if (!resume_.empty()) return UsageError("stream: --position and --resume exclude each other");
  position_file_ = std::filesystem::absolute(position_file_).string();  // a link stays one
  PB_ASSIGN_OR_RETURN(const std::optional<SavedPosition> saved, ReadPosition(position_file_));
  if (!saved.has_value()) return absl::OkStatus();
  resume_ = saved->token;
  before_ = saved->batches;
  epoch_ = 0;
  terminal.Note(StrCat("position        ", position_file_, ": ",
                       Counted(before_, "batch", "batches"), " were taken before"));
  return absl::OkStatus();
}

/// One file serves all ranks: the first writes it.
Status StreamCommand::KeepPosition(const client::Stream& stream) {
  if (position_file_.empty() || rank_ != 0) return absl::OkStatus();
  kept_ns_ = SteadyNowNs();
  const std::string token = position_.empty() ? stream.ResumeToken() : position_;
  return WritePosition(position_file_, {token, before_ + used_});
}

std::string StreamCommand::HowToGoOn() const {
  return position_file_.empty() ? StrCat("continue with --resume ", position_)
                                : StrCat("the same command goes on from ", position_file_);
}

/// Checks that the files of --save will fit, as far as can be known in advance.
Status StreamCommand::CheckDiskSpace(const client::Stream& stream) const {
  if (save_.empty() || force_) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const client::ResumeToken at, client::ParseResumeToken(stream.ResumeToken()));
  const std::uint64_t batches = WantedBatches(stream);
  const std::uint64_t bytes = BytesOfBatches(stream.layout(), stream.geometry(),
                                             static_cast<std::uint32_t>(rank_), at.next, batches);
  return CheckSaveFits(save_, batches, bytes);
}

Status StreamCommand::Use(const client::Batch& batch, client::StreamDigest& digest) const {
  if (digest_) PB_RETURN_IF_ERROR(digest.Add(batch));
  if (saved_) PB_RETURN_IF_ERROR(saved_->Save(batch));
  if (step_ms_ > 0) PauseMs(step_ms_);
  return absl::OkStatus();
}

/// Prints new lines of the job's log during a long wait for a batch: otherwise a trainer that no
/// node can reach would wait silently until its stream fails.
class LongWait {
 public:
  LongWait(client::Run& run, Terminal& terminal) : run_(run), terminal_(terminal) {}

  void Look() {
    if (SteadyNowNs() < look_ns_) return;
    look_ns_ = SteadyNowNs() + kLookAtLogNs;
    const auto lines = run_.cluster->client().FetchLogs(run_.job, read_);
    if (!lines.ok()) return;
    for (const protocol::LogsFetched::Line& line : *lines) {
      read_ = line.sequence;
      if (line.at >= since_) terminal_.Note(StrCat("waiting for a batch: ", client::TextOf(line)));
    }
  }

 private:
  client::Run& run_;
  Terminal& terminal_;
  const std::int64_t since_ = WallClockSeconds();
  std::int64_t look_ns_ = SteadyNowNs() + kLookAtLogNs;
  std::uint64_t read_ = 0;  ///< lines, by sequence
};

/// Shows how far a stream is, also while a batch is long in coming.
class StreamProgress {
 public:
  StreamProgress(Terminal& terminal, const client::Stream& stream, std::uint64_t wanted)
      : terminal_(terminal),
        stream_(stream),
        wanted_(wanted),
        lines_(terminal.live(), kLineEveryNs) {
    (void)lines_.Due(0, SteadyNowNs());  // there is nothing to show yet
  }

  void Taken(const client::Batch& batch) {
    ++taken_;
    epoch_ = batch.epoch();
    Look();
  }

  void Look() {
    const double share = static_cast<double>(taken_) / static_cast<double>(wanted_);
    if (!lines_.Due(share, SteadyNowNs())) return;
    const client::StreamStats stats = stream_.stats();
    terminal_.Progress(
        StrCat("batch ", taken_, "/", wanted_, "  epoch ", epoch_, "  ",
               Fixed(static_cast<double>(stats.patches) / std::max(stats.wall_s, 1e-9), 0),
               " patches/s  stall ", Fixed(100 * stats.stall_fraction, 1), " %"));
  }

 private:
  Terminal& terminal_;
  const client::Stream& stream_;
  const std::uint64_t wanted_;
  ProgressLines lines_;
  std::uint64_t taken_ = 0;
  std::uint32_t epoch_ = 0;
};

/// The next batch; Cancelled when interrupted, Unavailable when its own cluster has ended.
StatusOr<client::Batch> TakeNext(client::Run& run, Terminal& terminal, StreamProgress& progress) {
  LongWait wait(run, terminal);
  while (!Interrupted()) {
    StatusOr<client::Batch> batch = run.stream->Next(kNextSliceMs);
    if (batch.ok()) return batch;
    // A signal may go to all processes: the others are then gone before this one is done.
    if (Interrupted()) break;
    if (!absl::IsDeadlineExceeded(batch.status())) return batch;
    PB_RETURN_IF_ERROR(run.cluster->Alive());
    wait.Look();
    if (!terminal.live()) progress.Look();
  }
  return Cancelled("stream: interrupted");
}

Status StreamCommand::TakeBatches(Session& session, client::Run& run, StreamResult& result) {
  Terminal& terminal = session.terminal;
  client::Stream& stream = *run.stream;
  const std::uint64_t wanted = WantedBatches(stream);
  client::StreamDigest digest;
  StreamProgress progress(terminal, stream, wanted);
  PB_RETURN_IF_ERROR(KeepPosition(stream));
  for (std::uint64_t taken = 1; taken <= wanted; ++taken) {
    PB_ASSIGN_OR_RETURN(const client::Batch batch, TakeNext(run, terminal, progress));
    if (const Status used = Use(batch, digest); !used.ok()) {
      if (save_.empty()) return used;
      return Status(
          used.code(),
          StrCat(MessageOf(used), "; saved before it: ", Counted(taken - 1, "batch", "batches")));
    }
    result.counted.Add(batch);
    position_ = stream.ResumeToken();
    ++used_;
    progress.Taken(batch);
    // Ranks that read a file of several find the one position until the next stop.
    const bool is_due = world_size_ == 1 && SteadyNowNs() - kept_ns_ >= kPositionEveryNs;
    if (is_due) PB_RETURN_IF_ERROR(KeepPosition(stream));
  }
  terminal.EndProgress();
  if (digest_) result.digest = digest.Finish().Hex();
  return absl::OkStatus();
}

/// Patches by slide, by the table's column `site` and by class.
StatusOr<Json> StreamCommand::CountsOf(const client::Run& run,
                                       const RealisedCounts& counted) const {
  PB_ASSIGN_OR_RETURN(const plan::Plan plan, plan::Plan::Parse(*run.file.config.ops, run.plan));
  std::vector<std::string> slides, sites;
  for (const client::ImageRecord& record : run.records) {
    slides.push_back(record.slide_id);
    sites.push_back(record.Cell("site"));
  }
  return counted.Count(plan, run.stream->geometry(), static_cast<std::uint32_t>(rank_), slides,
                       sites);
}

/// The batches taken, also when an interrupt ended it early.
StatusOr<StreamResult> StreamCommand::Consume(Session& session, client::Run& run) {
  StreamResult result;
  const Status taken = TakeBatches(session, run, result);
  const Status kept = KeepPosition(*run.stream);
  result.stopped = absl::IsAborted(taken) || (absl::IsCancelled(taken) && Interrupted());
  if (!taken.ok() && !result.stopped) return taken;
  PB_RETURN_IF_ERROR(kept);
  const client::Stream& stream = *run.stream;
  result.stats = stream.stats();
  result.job = run.job;
  result.skipped = run.skipped;
  result.batches_per_epoch = stream.batches_per_epoch();
  result.ring_bytes = stream.ring_bytes();
  result.plan_digest = stream.plan_digest().Hex();
  result.resume_token = stream.ResumeToken();
  PB_ASSIGN_OR_RETURN(result.counts, CountsOf(run, result.counted));
  const StatusOr<protocol::ClusterDescribed> state = run.cluster->client().DescribeCluster();
  if (!state.ok() && result.stopped) return result;  // the scheduler may have ended, too
  PB_RETURN_IF_ERROR(state.status());
  result.workers = state->workers.size();
  result.peak_rss_bytes = PeakMemory(*state);
  if (!result.stopped) PB_RETURN_IF_ERROR(run.stream->Detach());
  return result;
}

StatusOr<ExitCode> StreamCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_RETURN_IF_ERROR(CheckGpus(own_.gpus));
  PB_RETURN_IF_ERROR(ReadStart(session.terminal));
  if (!save_.empty()) {
    const client::RunSource source{.ops = session.environment.ops,
                                   .file = path_,
                                   .overrides = set_,
                                   .split = split_,
                                   .streams = true};
    PB_RETURN_IF_ERROR(client::ReadRun(source).status());
    const std::string typed = save_;
    PB_ASSIGN_OR_RETURN(save_, client::AbsolutePath(save_));
    PB_RETURN_IF_ERROR(CheckOutsideStores("save batches", save_, typed));
    const BatchFolderOptions part{static_cast<std::uint32_t>(rank_),
                                  static_cast<std::uint32_t>(world_size_), force_};
    PB_ASSIGN_OR_RETURN(saved_, BatchFolder::Open(save_, part));
  }
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<client::Run> run, Open(session));
  if (const Status fits = CheckDiskSpace(*run->stream); !fits.ok()) {
    run->Abandon();
    return fits;
  }
  const StatusOr<StreamResult> result = Consume(session, *run);
  if (!result.ok()) {
    const Status why = run->Explain(result.status());
    run->Abandon();
    if (!position_.empty()) session.terminal.Note(HowToGoOn());
    return why;
  }
  SayResult(session.terminal, *result);
  if (result->stopped) {
    run->Abandon();
    if (position_.empty()) position_ = result->resume_token;
    if (Interrupted()) return Cancelled("stream: interrupted; ", HowToGoOn());
    session.terminal.Error(StrCat("stream: the cluster is stopping; ", HowToGoOn()));
    return ExitCode::kStopped;
  }
  Json json = ToJson(*result);
  if (!splits_.is_null()) json["splits"] = splits_;
  session.terminal.Result(json);
  return ExitCode::kDone;
}

}  // namespace

const char kStreamNote[] =
    "The bytes depend on the config, the epoch and the images alone: the digest is the same on "
    "any\n"
    "number of workers and nodes, and whatever was killed on the way. `patchbay help config` "
    "shows\n"
    "every key of RUN.yaml with its default.\n";

std::unique_ptr<Command> MakeStream() { return std::make_unique<StreamCommand>(); }

}  // namespace patchbay::cli
