// patchbay job ID: one job, its progress, and its failures.
#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/core/outcome_pseudonym.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr long kRateMs = 500;  ///< a stream's rate is measured for so long

class JobCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const protocol::JobRow job,
                        cluster.client().DescribeJob(static_cast<JobId>(job_)));
    for (const std::string& line : JobTable({job})) session.terminal.Say(line);
    std::optional<SlideJobRequest> request = RecordedRequest(session.environment, job);
    if (request.has_value()) LearnPlan(cluster.client(), job.job, *request);
    const protocol::JobRow named = request.has_value() ? Named(job, request->Names()) : job;
    Json row = JobToJson(named);
    const bool runs = job.state == protocol::JobState::kRunning;
    if (runs && job.kind == "stream") {
      PB_RETURN_IF_ERROR(SayStream(session, cluster.client(), job, row));
    } else if (runs) {
      SayProgress(session, job, request, row);
    }
    for (const protocol::FailedTask& task : named.failed) {
      const std::string pseudonym = PseudonymIn(task.outcome);
      session.terminal.Say(StrCat("failed ", task.task.ToString(), " ", task.label,
                                  pseudonym.empty() ? "" : StrCat(" (", pseudonym, ")"), ": ",
                                  TextOf(task.outcome)));
    }
    session.terminal.Result(row);
    return ExitCode::kDone;
  }

 private:
  static Status SayStream(Session& session, client::Client& client, const protocol::JobRow& job,
                          Json& row) {
    double rate = -1;
    if (job.patches_total != 0 && job.unattended_ms == 0 && !job.on_hold) {
      PB_ASSIGN_OR_RETURN(rate, PatchesPerSecond(client, job));
      row["patches_per_s"] = rate;
    }
    session.terminal.Say(StreamText(job, rate));
    return absl::OkStatus();
  }

  /// One line, and the same in `row`. Rates are means since the job was submitted.
  static void SayProgress(Session& session, const protocol::JobRow& job,
                          const std::optional<SlideJobRequest>& request, Json& row) {
    SlidesDone slides;
    const std::string done = request.has_value() ? slides.Text(*request) : std::string();
    if (!done.empty()) {
      row["slides"] = {{"done", slides.done()}, {"found", request->plan.sources}};
    }
    const auto elapsed_s = static_cast<double>(std::time(nullptr) - job.submitted_at);
    const JobPace pace = PaceOf(job, {}, elapsed_s);
    if (pace.bytes_per_s > 0) row["bytes_per_s"] = pace.bytes_per_s;
    if (pace.seconds_left >= 0) row["seconds_left"] = pace.seconds_left;
    session.terminal.Say(ProgressText(job, std::min(Share(job), kMostBeforeDone), done, pace));
  }

  std::int64_t job_ = 0;
};

}  // namespace

StatusOr<double> PatchesPerSecond(client::Client& client, const protocol::JobRow& before) {
  const std::int64_t begun = SteadyNowNs();
  PauseMs(kRateMs);
  PB_ASSIGN_OR_RETURN(const protocol::JobRow after, client.DescribeJob(before.job));
  const double made =
      static_cast<double>(after.patches_made) - static_cast<double>(before.patches_made);
  return std::max(made, 0.0) / (static_cast<double>(SteadyNowNs() - begun) * 1e-9);
}

Argument JobArgument(std::int64_t& job) {
  Argument argument{"ID", "", "number of the job", &job, true};
  argument.min = 1;
  return argument;
}

std::unique_ptr<Command> MakeJob() { return std::make_unique<JobCommand>(); }

}  // namespace patchbay::cli
