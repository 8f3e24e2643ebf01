// patchbay teams check|apply|show: shares of the cluster.
#include <algorithm>
#include <string>
#include <vector>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/teams/team_file.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/described.h"
#include "runtime/wire/protocol/message_fields.h"

namespace patchbay::cli {
namespace {

/// "8.0"; `none` for 0.
std::string CoresText(std::uint64_t millis, const char* none) {
  return millis == 0 ? none : Fixed(static_cast<double>(millis) / 1000, 1);
}

/// "8.0, 2 GPUs, 64.0 GiB", without what is 0; `none` for nothing.
std::string AmountsText(std::uint64_t millis, std::uint64_t gpus, std::uint64_t bytes,
                        const char* none) {
  std::vector<std::string> parts;
  if (millis != 0) parts.push_back(CoresText(millis, none));
  if (gpus != 0) parts.push_back(Counted(gpus, "GPU", "GPUs"));
  if (bytes != 0) parts.push_back(HumanBytes(bytes));
  return parts.empty() ? none : StrJoin(parts, ", ");
}

std::string GuaranteedText(const protocol::TeamRow& row) {
  const std::string text =
      AmountsText(row.guaranteed_cpu_millis, row.guaranteed_gpus, row.guaranteed_memory_bytes, "-");
  return row.lend_percent == 100 ? text : StrCat(text, ", lends ", row.lend_percent, " %");
}

std::string MostText(const protocol::TeamRow& row) {
  const auto gpus = static_cast<std::uint64_t>(std::max<std::int64_t>(row.most_gpus, 0));
  const std::string text =
      AmountsText(row.most_cpu_millis, gpus, row.most_memory_bytes, row.most_gpus == 0 ? "" : "-");
  if (row.most_gpus != 0) return text;
  return text.empty() ? "no GPU" : text + ", no GPU";
}

void Warn(Terminal& terminal, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) terminal.Note("warning: " + warning);
}

class TeamsCheckCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"FILE", "", "file of teams: configs/teams.md", &file_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(const TeamFile file, ReadTeamFile(file_));
    session.terminal.Say(StrCat(file_, ": ", Counted(file.policy.teams.size(), "team", "teams")));
    session.terminal.Result({{"file", file_}, {"policy", JsonOf(file.policy)}});
    return ExitCode::kDone;
  }

 private:
  std::string file_;
};

class TeamsApplyCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"FILE", "", "file of teams: configs/teams.md", &file_, true},
            {"--move-to", "TEAM", "team that gets the jobs of teams that are gone", &move_to_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(TeamFile file, ReadTeamFile(file_));
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const std::vector<std::string> warnings,
                        cluster.client().ApplyTeams(
                            {DumpJson(JsonOf(file.policy)), std::move(file.text), move_to_}));
    Warn(session.terminal, warnings);
    session.terminal.Say(StrCat(file_, " holds from now on"));
    session.terminal.Result({{"file", file_}, {"applied", true}, {"warnings", warnings}});
    return ExitCode::kDone;
  }

 private:
  std::string file_, move_to_;
};

class TeamsShowCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override { return {}; }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const protocol::TeamsDescribed teams, cluster.client().DescribeTeams());
    std::vector<std::vector<std::string>> rows = {
        {"team", "user", "guaranteed", "most", "weight", "wants", "has", "core hours", "jobs"}};
    for (const protocol::TeamRow& row : teams.rows) {
      rows.push_back(
          {row.team, row.user.empty() ? "-" : row.user, GuaranteedText(row), MostText(row),
           Fixed(row.weight_millis / 1000.0, 3), CoresText(row.wanted_cpu_millis, "0"),
           AmountsText(row.held_cpu_millis, row.held_gpus, row.held_memory_bytes, "0"),
           Fixed(static_cast<double>(row.used_cpu_ms) / 3.6e6, 2), StrCat(row.jobs_open)});
    }
    for (const std::string& line : FormatTable(rows)) session.terminal.Say(line);
    if (!teams.applied_by.empty()) {
      session.terminal.Say(StrCat("policy ", teams.digest.Hex().substr(0, kShownDigits),
                                  " applied by ", teams.applied_by));
    }
    Warn(session.terminal, teams.warnings);
    session.terminal.Result({{"rows", JsonOf(teams.rows)},
                             {"source", teams.source},
                             {"sha256", teams.digest.Hex()},
                             {"applied_by", teams.applied_by},
                             {"applied_at", teams.applied_at},
                             {"warnings", teams.warnings}});
    return ExitCode::kDone;
  }

 private:
  static constexpr std::size_t kShownDigits = 12;
};

}  // namespace

std::unique_ptr<Command> MakeTeamsCheck() { return std::make_unique<TeamsCheckCommand>(); }
std::unique_ptr<Command> MakeTeamsApply() { return std::make_unique<TeamsApplyCommand>(); }
std::unique_ptr<Command> MakeTeamsShow() { return std::make_unique<TeamsShowCommand>(); }

}  // namespace patchbay::cli
