// patchbay wait ID: waits until the job has ended; the exit code is the job's.
#include <optional>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

class WaitCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    const auto id = static_cast<JobId>(job_);
    PB_ASSIGN_OR_RETURN(const protocol::JobRow before, cluster.client().DescribeJob(id));
    std::optional<SlideJobRequest> request = RecordedRequest(session.environment, before);
    if (request.has_value()) return WaitForSlides(session, cluster, *request);
    JobProgress progress(session.terminal);
    PB_ASSIGN_OR_RETURN(const protocol::JobRow job,
                        cluster.client().Wait(
                            id, [&](const protocol::JobRow& row) { progress.Show(row); },
                            [] { return !Interrupted(); }));
    session.terminal.Say(StrCat("job ", job.job, " ", JobStateName(job.state)));
    for (const protocol::FailedTask& task : job.failed) {
      session.terminal.Note(StrCat("failed: ", task.label, ": ", TextOf(task.outcome)));
    }
    session.terminal.Result(JobToJson(job));
    return ExitOf(job);
  }

 private:
  /// Waits for the job, then prints and returns the same as the command that submitted it.
  StatusOr<ExitCode> WaitForSlides(Session& session, client::Cluster& cluster,
                                   SlideJobRequest& request) {
    PB_ASSIGN_OR_RETURN(const protocol::JobRow job,
                        WatchSlides(session, cluster, static_cast<JobId>(job_), request));
    session.terminal.Say(StrCat("job ", job.job, " ", JobStateName(job.state)));
    const Json row = JobToJson(Named(job, request.Names()));
    if (job.state == protocol::JobState::kDone || job.state == protocol::JobState::kPartlyFailed) {
      return EndSlideJob(session, cluster, request, job, &row);
    }
    for (const Json& failed : row["failed"]) {
      session.terminal.Note("failed: " + failed["reason"].get<std::string>());
    }
    session.terminal.Result(row);
    return ExitOf(job);
  }

  std::int64_t job_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeWait() { return std::make_unique<WaitCommand>(); }

}  // namespace patchbay::cli
