// patchbay retry ID: failed, cancelled and quarantined tasks run again.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

class RetryCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const std::uint64_t tasks,
                        cluster.client().RetryJob(static_cast<JobId>(job_)));
    const std::string again = tasks == 0 ? "nothing to retry: none of its tasks failed"
                                         : Counted(tasks, "task runs", "tasks run") + " again";
    session.terminal.Say(StrCat("job ", job_, ": ", again));
    session.terminal.Result({{"job", job_}, {"tasks", tasks}});
    return ExitCode::kDone;
  }

 private:
  std::int64_t job_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeRetry() { return std::make_unique<RetryCommand>(); }

}  // namespace patchbay::cli
