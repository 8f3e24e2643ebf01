// patchbay wait ID: until the job has ended; its exit code says how.
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/job_view.h"

namespace patchbay::cli {
namespace {

class WaitCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(ClusterAccess cluster, ClusterAccess::Open(session, nullptr));
    JobProgress progress(session.terminal);
    PB_ASSIGN_OR_RETURN(
        const protocol::JobRow job,
        cluster.client().Wait(
            static_cast<JobId>(job_), [&](const protocol::JobRow& row) { progress.Show(row); },
            [] { return !Interrupted(); }));
    session.terminal.Say(StrCat("job ", job.job, " ", JobStateName(job.state)));
    session.terminal.Result(JobToJson(job));
    return ExitOf(job);
  }

 private:
  std::int64_t job_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeWait() { return std::make_unique<WaitCommand>(); }

}  // namespace patchbay::cli
