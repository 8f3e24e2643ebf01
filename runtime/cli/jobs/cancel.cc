// patchbay cancel ID.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

class CancelCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_RETURN_IF_ERROR(cluster.client().CancelJob(static_cast<JobId>(job_)));
    session.terminal.Say(StrCat("job ", job_, " cancelled"));
    session.terminal.Result({{"job", job_}, {"cancelled", true}});
    return ExitCode::kDone;
  }

 private:
  std::int64_t job_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeCancel() { return std::make_unique<CancelCommand>(); }

}  // namespace patchbay::cli
