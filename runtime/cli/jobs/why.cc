// patchbay why ID: the one reason that a job waits, and what would start it.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

class WhyCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {JobArgument(job_)}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    const auto id = static_cast<JobId>(job_);
    PB_ASSIGN_OR_RETURN(const protocol::JobExplained why, cluster.client().ExplainJob(id));
    PB_ASSIGN_OR_RETURN(const protocol::JobRow job, cluster.client().DescribeJob(id));
    const bool waits = !why.cause.empty();
    const std::string whose = job.team.empty() ? job.kind : StrCat(job.kind, ", team ", job.team);
    session.terminal.Say(
        StrCat("job ", job_, " (", whose, ") ",
               waits ? StrCat("waits, ", why.cause) : StrCat("does not wait, ", StateText(job)),
               ": ", CoresText(job), " cores"));
    Json facts = Json::object();
    std::vector<std::vector<std::string>> rows;
    for (const protocol::JobExplained::Fact& fact : why.facts) {
      facts[fact.name] = fact.text;
      rows.push_back({"  " + fact.name, fact.text});
    }
    for (const std::string& line : FormatTable(rows)) session.terminal.Say(line);
    Json result = JobToJson(job);
    result["cause"] = why.cause;
    result["facts"] = facts;
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

 private:
  std::int64_t job_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeWhy() { return std::make_unique<WhyCommand>(); }

}  // namespace patchbay::cli
