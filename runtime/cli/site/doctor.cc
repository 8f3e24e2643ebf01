// patchbay doctor: reports the capabilities of this machine, and what it lacks; with --site also
// what the engine around it gives and lacks.
#include "runtime/cli/cluster/machine_checks.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/site/site_checks.h"
#include "runtime/client/paths.h"
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

std::string WithMeaning(const Check& check) {
  return check.means.empty() ? check.found : check.found + ": " + check.means;
}

class DoctorCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument site{"--site", "", "also what this engine gives: by srun, as root, or in a pod",
                  &site_.engine};
    site.choices = SiteEngines();
    return {{"--reach", "IP:PORT", "also test that a TCP connection to there opens", &reach_},
            site,
            {"--rendezvous", "DIR", "with --site slurm: as of `site run`", &site_.rendezvous},
            {"--interface", "NAME", "with --site slurm: as of `site run`", &site_.interface}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const bool at_site = !site_.engine.empty();
    if (!at_site && !(site_.rendezvous + site_.interface).empty()) {
      return UsageError("doctor: --rendezvous and --interface go with --site slurm");
    }
    std::vector<Check> checks = CheckMachine(session.environment);
    if (!reach_.empty()) checks.push_back(CheckReach(reach_));
    if (at_site) {
      site_.cluster_file = session.cluster_file;
      PB_ASSIGN_OR_RETURN(std::vector<Check> more, CheckSite(session.environment, site_));
      for (Check& check : more) checks.push_back(std::move(check));
    }
    return Report(checks, session.terminal);
  }

 private:
  /// A line each; with --site the problems, with their remedies, stand at the end.
  ExitCode Report(const std::vector<Check>& checks, Terminal& terminal) const {
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows, problems;
    bool works = true;
    for (const Check& check : checks) {
      works = works && check.state != CheckState::kBroken;
      list.push_back({{"name", check.name},
                      {"state", StateName(check.state)},
                      {"found", check.found},
                      {"means", check.means}});
      rows.push_back({StateName(check.state), check.name,
                      site_.engine.empty() ? WithMeaning(check) : check.found});
      if (check.state == CheckState::kOk) continue;
      problems.push_back({StateName(check.state), check.name, WithMeaning(check)});
    }
    for (const std::string& line : FormatTable(rows)) terminal.Say(line);
    if (!site_.engine.empty()) {
      terminal.Say("");
      for (const std::string& line : FormatTable(problems)) terminal.Say(line);
    }
    terminal.Result({{"checks", list}, {"works", works}});
    return works ? ExitCode::kDone : ExitCode::kFailed;
  }

  std::string reach_;
  SiteQuestion site_;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<DoctorCommand>(); }

}  // namespace patchbay::cli
