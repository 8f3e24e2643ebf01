// patchbay jobs: all jobs of the clusters here, newest first.
#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/seen_clusters.h"

namespace patchbay::cli {
namespace {

class JobsCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    Json result = {{"jobs", Json::array()}}, embedded = Json::array();
    PB_RETURN_IF_ERROR(
        LookAtClusters(session, [&](client::Client& client, const std::string& key_file) -> Status {
          PB_ASSIGN_OR_RETURN(const std::vector<protocol::JobRow> jobs, client.DescribeAllJobs());
          Json list = Json::array();
          for (const protocol::JobRow& job : jobs) list.push_back(JobToJson(job));
          SayEmbedded(session.terminal, key_file);
          for (const std::string& line : JobTable(jobs)) session.terminal.Say(line);
          AddCluster({{"jobs", list}}, key_file, result, embedded);
          return absl::OkStatus();
        }));
    result["embedded"] = embedded;
    session.terminal.Result(result);
    return ExitCode::kDone;
  }
};

}  // namespace

std::unique_ptr<Command> MakeJobs() { return std::make_unique<JobsCommand>(); }

}  // namespace patchbay::cli
