// patchbay doctor: reports the capabilities of this machine, and what it lacks.
#include "runtime/cli/cluster/machine_checks.h"
#include "runtime/cli/commands.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

const char* StateName(CheckState state) {
  switch (state) {
    case CheckState::kOk:
      return "ok";
    case CheckState::kLacks:
      return "lacks";
    case CheckState::kBroken:
      return "broken";
  }
  return "";
}

class DoctorCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"--reach", "IP:PORT", "also test that a TCP connection to there opens", &reach_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows;
    bool works = true;
    std::vector<Check> checks = CheckMachine(session.environment);
    if (!reach_.empty()) checks.push_back(CheckReach(reach_));
    for (const Check& check : checks) {
      works = works && check.state != CheckState::kBroken;
      list.push_back({{"name", check.name},
                      {"state", StateName(check.state)},
                      {"found", check.found},
                      {"means", check.means}});
      rows.push_back({StateName(check.state), check.name,
                      check.means.empty() ? check.found : check.found + ": " + check.means});
    }
    for (const std::string& line : FormatTable(rows)) session.terminal.Say(line);
    session.terminal.Result({{"checks", list}, {"works", works}});
    return works ? ExitCode::kDone : ExitCode::kFailed;
  }

 private:
  std::string reach_;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<DoctorCommand>(); }

}  // namespace patchbay::cli
