// patchbay down: drains every node and stops the cluster.
#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/up_lock.h"

namespace patchbay::cli {
namespace {

constexpr TimeMs kStopLimitMs = 60'000;
constexpr long kLookEveryMs = 50;

class DownCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const bool here = session.cluster_file.empty();
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_RETURN_IF_ERROR(cluster.client().ShutDown());
    const TimeMs deadline = SteadyClock().NowMs() + kStopLimitMs;
    while (here && client::ClusterHere(session.environment) != client::ClusterState::kNone &&
           !Interrupted()) {
      if (SteadyClock().NowMs() > deadline) {
        return absl::DeadlineExceededError(
            StrCat("down: still running after ", kStopLimitMs / 1000, " s"));
      }
      PauseMs(kLookEveryMs);
    }
    session.terminal.Say(here ? "stopped" : "stopping");
    session.terminal.Result({{"stopped", here}});
    return ExitCode::kDone;
  }
};

}  // namespace

std::unique_ptr<Command> MakeDown() { return std::make_unique<DownCommand>(); }

}  // namespace patchbay::cli
