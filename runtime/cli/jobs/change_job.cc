// patchbay priority ID N, patchbay hold ID, patchbay release ID.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

using protocol::JobChange;

class ChangeJobCommand final : public Command {
 public:
  explicit ChangeJobCommand(JobChange change) : change_(change) {}

  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = {JobArgument(job_)};
    if (change_ != JobChange::kPriority) return arguments;
    Argument priority{"N", "", "-100 to 100, above 0 for operators; higher goes first", &priority_,
                      true};
    priority.min = -100;
    priority.max = 100;
    arguments.push_back(priority);
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    const auto priority = static_cast<std::int32_t>(priority_);
    PB_RETURN_IF_ERROR(cluster.client().ChangeJob({static_cast<JobId>(job_), change_, priority}));
    Json result = {{"job", job_}};
    if (change_ == JobChange::kPriority) {
      result["priority"] = priority;
      session.terminal.Say(StrCat("job ", job_, " has priority ", priority));
    } else {
      const bool held = change_ == JobChange::kHold;
      result["held"] = held;
      session.terminal.Say(StrCat("job ", job_, held ? " held" : " released"));
    }
    session.terminal.Result(result);
    return ExitCode::kDone;
  }

 private:
  const JobChange change_;
  std::int64_t job_ = 0, priority_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakePriority() {
  return std::make_unique<ChangeJobCommand>(JobChange::kPriority);
}
std::unique_ptr<Command> MakeHold() { return std::make_unique<ChangeJobCommand>(JobChange::kHold); }
std::unique_ptr<Command> MakeRelease() {
  return std::make_unique<ChangeJobCommand>(JobChange::kRelease);
}

}  // namespace patchbay::cli
