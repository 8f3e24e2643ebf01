// patchbay jobs: all jobs, newest first.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/job_view.h"

namespace patchbay::cli {
namespace {

class JobsCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const std::vector<protocol::JobRow> jobs,
                        cluster.client().DescribeAllJobs());
    Json list = Json::array();
    for (const protocol::JobRow& job : jobs) list.push_back(JobToJson(job));
    for (const std::string& line : JobTable(jobs)) session.terminal.Say(line);
    session.terminal.Result({{"jobs", list}});
    return ExitCode::kDone;
  }
};

}  // namespace

std::unique_ptr<Command> MakeJobs() { return std::make_unique<JobsCommand>(); }

}  // namespace patchbay::cli
