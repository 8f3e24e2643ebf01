// patchbay stream RUN.yaml: attaches as a trainer and takes batches, as fast as they come or with a
// simulated training step.
#include "runtime/client/stream.h"

#include <algorithm>
#include <memory>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/batch_files.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/network.h"
#include "runtime/cli/paths.h"
#include "runtime/cli/peak_memory.h"
#include "runtime/cli/run_file.h"
#include "runtime/cli/stream_paths.h"
#include "runtime/control/keys.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kNextSliceMs = 200;  ///< between looks for Ctrl-C
constexpr std::int64_t kRedrawEveryNs = 200'000'000;

/// What came out of a stream.
struct StreamResult {
  client::StreamStats stats;
  std::uint64_t batches_per_epoch = 0, ring_bytes = 0;
  std::string plan_digest, digest, resume_token;
  std::size_t workers = 0;
  std::map<std::string, std::uint64_t> peak_rss_bytes;
};

Json ToJson(const StreamResult& result) {
  const client::StreamStats& stats = result.stats;
  const double seconds = std::max(stats.wall_s, 1e-9);
  Json json = {{"batches", stats.batches},
               {"patches", stats.patches},
               {"seconds", stats.wall_s},
               {"patches_per_s", static_cast<double>(stats.patches) / seconds},
               {"bytes_per_s", static_cast<double>(stats.bytes) / seconds},
               {"stall_fraction", stats.stall_fraction},
               {"first_batch_s", stats.first_batch_s},
               {"workers", result.workers},
               {"batches_per_epoch", result.batches_per_epoch},
               {"ring_bytes", result.ring_bytes},
               {"remote_bytes", stats.remote_bytes},
               {"shards_refused", stats.shards_refused},
               {"plan_digest", result.plan_digest},
               {"resume_token", result.resume_token},
               {"peak_rss_bytes", result.peak_rss_bytes}};
  if (!result.digest.empty()) json["digest"] = result.digest;
  return json;
}

void SayResult(Terminal& terminal, const StreamResult& result) {
  const client::StreamStats& stats = result.stats;
  const double seconds = std::max(stats.wall_s, 1e-9);
  terminal.Say(StrCat("batches         ", stats.batches, " (", result.batches_per_epoch,
                      " an epoch), ", stats.patches, " patches in ", HumanSeconds(seconds)));
  terminal.Say(StrCat(
      "throughput      ", Fixed(static_cast<double>(stats.patches) / seconds, 1), " patches/s, ",
      HumanBytes(static_cast<std::uint64_t>(static_cast<double>(stats.bytes) / seconds)), "/s"));
  terminal.Say(StrCat("stall fraction  ", Fixed(100 * stats.stall_fraction, 2),
                      " % of the time spent waiting, from batch 2 on"));
  std::vector<std::string> peaks;
  for (const auto& [name, bytes] : result.peak_rss_bytes) {
    peaks.push_back(StrCat(name, " ", HumanBytes(bytes)));
  }
  terminal.Say(StrCat("peak memory     ", StrJoin(peaks, ", ")));
  terminal.Say(StrCat("plan            ", result.plan_digest));
  if (!result.digest.empty()) terminal.Say(StrCat("digest          ", result.digest));
}

class StreamCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<std::unique_ptr<client::Stream>> Attach(const Session& session, ClusterAccess& cluster,
                                                   const RunFile& run);
  Status TakeBatches(Session& session, ClusterAccess& cluster, client::Stream& stream,
                     StreamResult& result);
  Status Use(const client::Batch& batch, Sha256& digest) const;
  StatusOr<StreamResult> Consume(Session& session, ClusterAccess& cluster, const RunFile& run);

  std::string path_, save_, data_policy_;
  std::int64_t epoch_ = 0;
  std::optional<std::int64_t> batches_;
  std::int64_t step_ms_ = 0;
  bool digest_ = false;
  OwnClusterArguments own_;
  JobId job_ = 0;
  std::vector<std::string> images_;  ///< paths in the plan's order, once it is made
};

std::vector<Argument> StreamCommand::Arguments() {
  Argument epoch{"--epoch", "E", "the epoch to start with (default 0)", &epoch_};
  epoch.min = 0;
  epoch.max = 65535;
  Argument batches{"--batches", "N", "how many, past epochs' ends too (default: one epoch)",
                   &batches_};
  batches.min = 1;
  Argument step{"--step-ms", "T", "pretend to train that long on each batch", &step_ms_};
  step.min = 0;
  step.max = 3'600'000;
  std::vector<Argument> arguments = {
      {"RUN.yaml", "", "the run config", &path_, true},
      epoch,
      batches,
      step,
      {"--digest", "", "SHA-256 of all batch bytes in order (slower)", &digest_},
      {"--save", "DIR", "write every batch as a .npy file", &save_},
      PolicyArgument(data_policy_)};
  own_.AddTo(arguments);
  return arguments;
}

/// Before slides are read for a plan whose bits nobody here makes: the scheduler would say it
/// after.
Status CheckNumerics(client::Client& client, const plan::RunConfig& config) {
  if (config.numerics != plan::Numerics::kCuda) return absl::OkStatus();
  PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed cluster, client.DescribeCluster());
  const auto has_gpu = [](const protocol::NodeRow& node) { return !node.gpus.empty(); };
  // A scheduler that has just started may not know its nodes yet: it is left to it.
  if (cluster.nodes.empty() || std::any_of(cluster.nodes.begin(), cluster.nodes.end(), has_gpu)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "stream: numerics cuda: no node of the cluster has a GPU worker; run it where one has "
      "(patchbay doctor says what this machine offers), or say numerics: cpu, whose bits differ");
}

StatusOr<std::unique_ptr<client::Stream>> StreamCommand::Attach(const Session& session,
                                                                ClusterAccess& cluster,
                                                                const RunFile& run) {
  client::Client& client = cluster.client();
  PB_RETURN_IF_ERROR(CheckNumerics(client, run.config));
  Json payload = run.Payload();
  payload["world_size"] = 1;
  if (!run.config.numerics.has_value()) {
    PB_ASSIGN_OR_RETURN(payload["cluster_numerics"], ClusterNumerics(client));
  }
  protocol::SubmitJob submission;
  submission.kind = "stream";
  submission.name = "stream";
  submission.root.op = "stream.plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson(payload);
  submission.manifest = DumpJson(run.Manifest());
  PB_ASSIGN_OR_RETURN(job_, client.SubmitJob(std::move(submission)));
  PB_ASSIGN_OR_RETURN(const std::string planned,
                      client.WaitForResult({job_, 0}, [] { return !Interrupted(); }));
  images_ = PlannedPaths(planned);

  PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ReadKeyFile(cluster.key_file()));
  client::StreamOptions options;
  options.key_file = cluster.key_file();
  options.job = job_;
  options.first.epoch = static_cast<std::uint32_t>(epoch_);
  options.prefetch = run.config.prefetch;
  options.spares = kStreamSpares;
  options.keep_waiting = [&cluster] { return cluster.Alive().ok() && !Interrupted(); };
  PB_ASSIGN_OR_RETURN(options.network,
                      TrainerNetwork(session.environment, data_policy_, key.address));
  return client::Stream::Attach(options);
}

Status StreamCommand::Use(const client::Batch& batch, Sha256& digest) const {
  if (digest_) digest.Update(batch.bytes());
  if (!save_.empty()) PB_RETURN_IF_ERROR(SaveBatch(save_, batch));
  if (step_ms_ > 0) PauseMs(step_ms_);
  return absl::OkStatus();
}

/// The next batch; Cancelled when interrupted, Unavailable when its own cluster has ended.
StatusOr<client::Batch> TakeNext(ClusterAccess& cluster, client::Stream& stream) {
  while (true) {
    StatusOr<client::Batch> batch = stream.Next(kNextSliceMs);
    if (!absl::IsDeadlineExceeded(batch.status())) return batch;
    PB_RETURN_IF_ERROR(cluster.Alive());
    if (Interrupted()) return absl::CancelledError("stream: interrupted");
  }
}

Status StreamCommand::TakeBatches(Session& session, ClusterAccess& cluster, client::Stream& stream,
                                  StreamResult& result) {
  Terminal& terminal = session.terminal;
  const std::uint64_t wanted =
      batches_.has_value() ? static_cast<std::uint64_t>(*batches_) : stream.batches_per_epoch();
  Sha256 digest;
  std::int64_t shown_ns = SteadyNowNs();
  for (std::uint64_t taken = 1; taken <= wanted; ++taken) {
    if (Interrupted()) return absl::CancelledError("stream: interrupted");
    PB_ASSIGN_OR_RETURN(const client::Batch batch, TakeNext(cluster, stream));
    PB_RETURN_IF_ERROR(Use(batch, digest));
    const bool due = terminal.live() ? SteadyNowNs() - shown_ns > kRedrawEveryNs
                                     : taken * 10 / wanted != (taken - 1) * 10 / wanted;
    if (!due) continue;
    shown_ns = SteadyNowNs();
    const client::StreamStats stats = stream.stats();
    terminal.Progress(
        StrCat("batch ", taken, "/", wanted, "  epoch ", batch.epoch(), "  ",
               Fixed(static_cast<double>(stats.patches) / std::max(stats.wall_s, 1e-9), 0),
               " patches/s  stall ", Fixed(100 * stats.stall_fraction, 1), " %"));
  }
  terminal.EndProgress();
  result.stats = stream.stats();
  if (digest_) result.digest = digest.Finish().Hex();
  return absl::OkStatus();
}

StatusOr<StreamResult> StreamCommand::Consume(Session& session, ClusterAccess& cluster,
                                              const RunFile& run) {
  PB_ASSIGN_OR_RETURN(const std::unique_ptr<client::Stream> stream, Attach(session, cluster, run));
  StreamResult result;
  PB_RETURN_IF_ERROR(TakeBatches(session, cluster, *stream, result));
  result.batches_per_epoch = stream->batches_per_epoch();
  result.ring_bytes = stream->ring_bytes();
  result.plan_digest = stream->plan_digest().Hex();
  result.resume_token = stream->ResumeToken();
  PB_ASSIGN_OR_RETURN(const protocol::ClusterDescribed state, cluster.client().DescribeCluster());
  result.workers = state.workers.size();
  result.peak_rss_bytes = PeakMemory(state);
  PB_RETURN_IF_ERROR(stream->Detach());
  return result;
}

StatusOr<ExitCode> StreamCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(const RunFile run, ReadRunFile(path_));
  if (!save_.empty()) {
    PB_ASSIGN_OR_RETURN(save_, AbsolutePath(save_));
    PB_RETURN_IF_ERROR(MakeDirectories(save_));
  }
  PB_ASSIGN_OR_RETURN(ClusterAccess cluster, ClusterAccess::Open(session, &own_));
  const StatusOr<StreamResult> result = Consume(session, cluster, run);
  if (!result.ok()) {
    // The job must not stay behind in a cluster that goes on; what matters is the first error.
    if (job_ != 0 && !cluster.embedded()) (void)cluster.client().CancelJob(job_);
    return run.Locate(NamePaths(cluster.Explain(result.status()), run.images, images_));
  }
  SayResult(session.terminal, *result);
  session.terminal.Result(ToJson(*result));
  return ExitCode::kDone;
}

}  // namespace

const char kStreamNote[] =
    "The bytes depend on the config, the epoch and the images alone: the digest is the same on "
    "any\n"
    "number of workers and nodes, and whatever was killed on the way.\n";

std::unique_ptr<Command> MakeStream() { return std::make_unique<StreamCommand>(); }

}  // namespace patchbay::cli
