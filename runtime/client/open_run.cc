#include "runtime/client/open_run.h"

#include <algorithm>
#include <utility>

#include "runtime/client/memory_lock.h"
#include "runtime/client/network.h"
#include "runtime/client/resume_token.h"
#include "runtime/client/stream_paths.h"
#include "runtime/core/clock.h"
#include "runtime/core/counted.h"
#include "runtime/core/log.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/bands.h"
#include "runtime/model/plan/plan.h"
#include "runtime/wire/control/keys.h"

namespace patchbay::client {
namespace {

constexpr std::int64_t kWatchEveryNs = 200'000'000;
constexpr std::int64_t kSayAfterNs = 1'000'000'000;  ///< a cause to wait

Status CheckOptions(const RunOptions& options) {
  const auto refuse = [](std::string_view cause) {
    return ConfigFault(StrCat("open run: ", cause));
  };
  if (options.world_size < 1 || options.rank >= options.world_size) {
    return refuse(StrCat("rank ", options.rank, " of ", Counted(options.world_size, "rank"),
                         ": ranks count from 0"));
  }
  if (options.job != 0 && !options.name.empty())
    return refuse("a name and a job exclude each other");
  const bool together =
      options.job != 0 || !options.name.empty() || !options.cluster.environment.rendezvous.empty();
  if (options.world_size > 1 && !together) {
    return refuse("several ranks need a common name or job");
  }
  if (!options.resume_token.empty() && options.epoch != 0) {
    return refuse("a resume token and an epoch exclude each other");
  }
  return absl::OkStatus();
}

/// A consumer's: two of one run will not draw the same.
std::uint32_t DrawnRank() { return static_cast<std::uint32_t>(RandomU64() | 1); }

/// The name that the ranks share; "" for a run of its own.
std::string SharedName(const RunOptions& options) {
  if (!options.name.empty() || options.world_size == 1) return options.name;
  return StrCat("run-", Sha256Of(options.cluster.environment.rendezvous).Hex().substr(0, 16));
}

class Opening {
 public:
  Opening(const RunOptions& options, Run& run) : options_(options), run_(run) {}

  Status Open() {
    PB_RETURN_IF_ERROR(ReadToken());
    RunSource source = options_.source;
    source.ops = options_.cluster.environment.ops;
    source.split = options_.split;
    source.augment = options_.augment;
    source.streams = true;
    source.map = options_.map;
    PB_ASSIGN_OR_RETURN(run_.file, ReadRun(source));
    PB_RETURN_IF_ERROR(SettleBatch());
    PB_RETURN_IF_ERROR(OpenCluster());
    Status opened = Attach();
    if (!opened.ok()) {
      opened = run_.Explain(opened);
      run_.Abandon();
    }
    return opened;
  }

 private:
  Status ReadToken() {
    first_.epoch = options_.epoch;
    if (options_.resume_token.empty()) return absl::OkStatus();
    const StatusOr<ResumeToken> token = ParseResumeToken(options_.resume_token);
    if (!token.ok()) return ConfigFault(MessageOf(token.status()));
    token_ = *token;
    first_ = token_->next;
    return absl::OkStatus();
  }

  /// batch.per_rank becomes the size of a batch once; from then on that size stays.
  Status SettleBatch() {
    plan::RunConfig& config = run_.file.config;
    const bool resumed = token_.has_value();
    return run_.file.Locate(
        plan::SettleBatch(config, resumed ? token_->global_size : 0, options_.world_size));
  }

  Status OpenCluster() {
    run_.cluster = options_.open_cluster;
    if (run_.cluster != nullptr) return absl::OkStatus();
    ClusterOptions cluster = options_.cluster;
    if (cluster.share.empty() && options_.world_size > 1) {
      cluster.share = cluster.environment.rendezvous;
    }
    PB_ASSIGN_OR_RETURN(Cluster opened, Cluster::Open(cluster));
    run_.cluster = std::make_shared<Cluster>(std::move(opened));
    return absl::OkStatus();
  }

  Status Attach() {
    Client& client = run_.cluster->client();
    if (run_.file.config.numerics == Numerics::kCuda) {
      PB_RETURN_IF_ERROR(CheckGpuWorkers(client, "stream"));
    }
    run_.job = options_.job;
    if (run_.job == 0) {
      PB_RETURN_IF_ERROR(Submit(client));
    } else {
      PB_RETURN_IF_ERROR(CheckIsStream(client));
    }
    PB_RETURN_IF_ERROR(WaitForPlan(client));
    PB_ASSIGN_OR_RETURN(run_.stream, AttachStream());
    return plan::IsMap(run_.file.config) ? FindUnits() : absl::OkStatus();
  }

  Status FindUnits() {
    PB_ASSIGN_OR_RETURN(const plan::Plan plan, plan::Plan::Parse(*run_.file.config.ops, run_.plan));
    run_.first_units = plan::FirstUnits(plan.cumulative_patches(), run_.stream->geometry().units);
    return absl::OkStatus();
  }

  Status CheckIsStream(Client& client) const {
    const StatusOr<protocol::JobRow> row = client.DescribeJob(run_.job);
    if (!row.ok() || row->kind == "stream") return absl::OkStatus();  // attaching says why not
    return InvalidArgument("open run: job ", run_.job, " is of kind '", row->kind,
                           "', not a stream");
  }

  /// When the images cannot be planned, Run::images is the list in which the error counts.
  Status WaitForPlan(Client& client) {
    const std::int64_t began_ns = SteadyNowNs();
    std::int64_t seen_ns = began_ns;
    const auto keep_waiting = [&, ask = KeepWaiting()] {
      if (SteadyNowNs() - seen_ns > kWatchEveryNs) {
        seen_ns = SteadyNowNs();
        const StatusOr<protocol::JobRow> row = client.DescribeJob(run_.job);
        if (row.ok() && options_.watch) options_.watch(*row);
        if (row.ok() && !MayWait(client, row->cause, seen_ns - began_ns)) return false;
      }
      return ask();
    };
    const StatusOr<std::string> planned =
        client.WaitForResult({run_.job, protocol::kLastTask}, keep_waiting);
    PB_RETURN_IF_ERROR(refused_);
    if (!planned.ok()) {
      const auto& user = options_.cluster.keep_waiting;
      if (absl::IsCancelled(planned.status()) && user && !user()) {
        return Cancelled("open run: interrupted while planning");
      }
      const auto listed = client.FetchResult({run_.job, 0});
      if (listed.ok()) run_.images = PlannedPaths(listed->result);
      return planned.status();
    }
    PB_ASSIGN_OR_RETURN(PlannedRun read, ReadPlannedRun(*run_.file.config.ops, *planned));
    run_.images = read.manifest.Paths();
    run_.skipped = std::move(read.skipped);
    run_.plan = read.plan.Text();
    PB_ASSIGN_OR_RETURN(run_.records, RecordsOf(run_.file, read));
    return run_.file.AddPlanned(read.plan, read.manifest);
  }

  Status Submit(Client& client) {
    Json payload = run_.file.Payload();
    plan::StreamStart start{.world_size = options_.world_size, .start = first_};
    if (!run_.file.config.numerics.has_value()) {
      PB_ASSIGN_OR_RETURN(const std::string name, ClusterNumerics(client));
      start.cluster_numerics = NumericsFromName(name).value_or(Numerics::kCpu);
    }
    payload.update(JsonOf(start));
    const std::string name = SharedName(options_);
    protocol::SubmitJob submission;
    submission.kind = "stream";
    submission.name = name.empty() ? "stream" : name;
    submission.join = !name.empty();
    submission.world_size = options_.world_size;
    submission.root.op = "stream.plan";
    submission.root.label = "plan";
    submission.root.payload = DumpJson(payload);
    submission.manifest = DumpJson(JsonOf(run_.file.Manifest()));
    submission.waits = options_.wait_s != 0;
    submission.priority = options_.priority;
    PB_ASSIGN_OR_RETURN(run_.job, client.SubmitJob(submission));
    run_.submitted = name.empty();
    return absl::OkStatus();
  }

  /// Says why the job waits, once a change of a cause that lasts. False when it has waited for a
  /// place of its team as long as it was to: it is cancelled, unless another command submitted it.
  bool MayWait(Client& client, const std::string& cause, std::int64_t waited_ns) {
    const bool is_over = cause == "cap_team" && waited_ns >= options_.wait_s * 1'000'000'000;
    if (std::exchange(cause_, cause) != cause) cause_since_ns_ = SteadyNowNs();
    const bool lasts = SteadyNowNs() - cause_since_ns_ >= kSayAfterNs;
    if (cause.empty() || !(is_over || (lasts && said_ != cause))) return true;
    const StatusOr<protocol::JobExplained> explained = client.ExplainJob(run_.job);
    if (!explained.ok() || explained->cause != cause) return true;
    said_ = cause;
    std::string why = StrCat("job ", run_.job, " waits, ", cause);
    for (const auto& fact : explained->facts) why += StrCat("; ", fact.name, " ", fact.text);
    if (!is_over) {
      LogWarning(StrCat("not yet: ", why));
      return true;
    }
    refused_ = ResourceExhausted("open run: ", why, "; it was to wait for ",
                                 Counted(options_.wait_s, "second"));
    if (options_.job == 0) (void)client.CancelJob(run_.job);
    return false;
  }

  StatusOr<std::unique_ptr<Stream>> AttachStream() {
    PB_ASSIGN_OR_RETURN(const control::KeyFile key, control::ReadKeyFile(run_.cluster->key_file()));
    StreamOptions options;
    options.key_file = run_.cluster->key_file();
    options.job = run_.job;
    options.rank = options_.map ? DrawnRank() : options_.rank;
    options.world_size = options_.world_size;
    options.first = first_;
    options.resume = token_;
    options.prefetch = run_.file.config.prefetch;
    options.spares = kStreamSpares;
    options.memory = options_.memory;
    options.device = options_.device;
    options.leave_when_stopping = options_.leave_when_stopping;
    options.keep_waiting = KeepWaiting();
    const TrainerListening listening{options_.data_policy, options_.data_listen,
                                     run_.file.config.data_ports};
    PB_ASSIGN_OR_RETURN(options.network,
                        TrainerNetwork(options_.cluster.environment, listening, key.address));
    if (options.network.policy == data::NetworkPolicy::kRdma) WarnOfMemoryLock();
    return Stream::Attach(options);
  }

  /// Warns before the ring is registered, which may fail for want of that memory.
  void WarnOfMemoryLock() const {
    const StatusOr<plan::Plan> plan = plan::Plan::Parse(*run_.file.config.ops, run_.plan);
    if (!plan.ok()) return;
    const StatusOr<StreamGeometry> geometry = plan->Geometry(options_.world_size);
    if (!geometry.ok()) return;
    const StatusOr<std::uint64_t> bytes =
        plan::RingBytes(plan->layout(), *geometry, run_.file.config.prefetch);
    const std::string advice = bytes.ok() ? MemoryLockAdvice(*bytes, MemoryLockLimit()) : "";
    if (!advice.empty()) LogWarning(advice);
  }

  std::function<bool()> KeepWaiting() const {
    return [cluster = run_.cluster, ask = options_.cluster.keep_waiting] {
      return cluster->Alive().ok() && (!ask || ask());
    };
  }

  const RunOptions& options_;
  Run& run_;
  std::optional<ResumeToken> token_;
  Position first_;
  std::string cause_, said_;  ///< why the job waited at the last look, and what was said
  std::int64_t cause_since_ns_ = 0;
  Status refused_;  ///< set when it waited too long
};

}  // namespace

Status Run::Explain(const Status& status) const {
  const Status why = cluster == nullptr ? status : cluster->Explain(status);
  return file.Locate(NamePaths(why, file.Datasets(), images));
}

void Run::Abandon() {
  stream.reset();
  // The error that came before is the one that matters. An embedded cluster takes its jobs along.
  if (submitted && job != 0 && !cluster->embedded()) (void)cluster->client().CancelJob(job);
}

StatusOr<std::unique_ptr<Run>> OpenRun(const RunOptions& options) {
  PB_RETURN_IF_ERROR(CheckOptions(options));
  auto run = std::make_unique<Run>();
  PB_RETURN_IF_ERROR(Opening(options, *run).Open());
  return run;
}

}  // namespace patchbay::client
