// patchbay dashboard CODE: a browser sees the dashboard as the user of this key.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"

namespace patchbay::cli {
namespace {

class DashboardCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"CODE", "", "code that the page shows", &code_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_RETURN_IF_ERROR(cluster.client().AdmitBrowser(code_));
    session.terminal.Say("the browser sees what this key may see, for 12 hours at most");
    session.terminal.Result({{"code", code_}});
    return ExitCode::kDone;
  }

 private:
  std::string code_;
};

}  // namespace

std::unique_ptr<Command> MakeDashboard() { return std::make_unique<DashboardCommand>(); }

}  // namespace patchbay::cli
