// patchbay job ID: one job, and what failed in it.
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/job_view.h"

namespace patchbay::cli {
namespace {

class JobCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(ClusterAccess cluster, ClusterAccess::Open(session, nullptr));
    PB_ASSIGN_OR_RETURN(const protocol::JobRow job,
                        cluster.client().DescribeJob(static_cast<JobId>(job_)));
    for (const std::string& line : JobTable({job})) session.terminal.Say(line);
    for (const protocol::FailedTask& task : job.failed) {
      session.terminal.Say(
          StrCat("failed ", task.task.ToString(), " ", task.label, ": ", task.outcome.message));
    }
    session.terminal.Result(JobToJson(job));
    return ExitCode::kDone;
  }

 private:
  std::int64_t job_ = 0;
};

}  // namespace

Argument JobArgument(std::int64_t& job) {
  Argument argument{"ID", "", "number of the job", &job, true};
  argument.min = 1;
  return argument;
}

std::unique_ptr<Command> MakeJob() { return std::make_unique<JobCommand>(); }

}  // namespace patchbay::cli
