// patchbay node ready: the probe of a container that runs `up` or `join`.
#include "runtime/cli/commands.h"
#include "runtime/client/up_lock.h"

namespace patchbay::cli {
namespace {

class NodeReadyCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    if (!client::NodeServesHere(session.environment)) {
      return Unavailable("node ready: ", session.environment.home,
                         ": no `patchbay up` or `join` of this PATCHBAY_HOME serves");
    }
    session.terminal.Say("ready");
    session.terminal.Result({{"ready", true}});
    return ExitCode::kDone;
  }
};

}  // namespace

const char kNodeReadyNote[] =
    "Exit code 0 from the moment that `up` listens or `join` has joined until it is told to stop,\n"
    "else 1. Asks no other process and no network.\n";

std::unique_ptr<Command> MakeNodeReady() { return std::make_unique<NodeReadyCommand>(); }

}  // namespace patchbay::cli
