#include "scheduler/core/team_handler.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/core/charges.h"
#include "scheduler/policy/limits.h"
#include "scheduler/policy/team_texts.h"

namespace patchbay::scheduler {
Status TeamHandler::CheckPolicy(const protocol::ApplyTeams& message,
                                const model::TeamPolicy& policy) const {
  if (!message.move_to.empty() && policy.Find(message.move_to) == nullptr) {
    return InvalidArgument("--move-to ", message.move_to, ": the policy has no such team");
  }
  std::string jobs, team;
  std::size_t count = 0;
  for (const auto& [id, job] : barrier_.table().jobs()) {
    if (IsEnded(job.state) || policy.Find(job.team) != nullptr) continue;
    if (++count <= kMaxJobsNamed) jobs += StrCat(count == 1 ? "" : ", ", id);
    team = ShownTeam(job.team);
  }
  if (count == 0 || !message.move_to.empty()) return absl::OkStatus();
  return FailedPrecondition("team ", team, " is gone, and has open jobs: ", jobs,
                            count > kMaxJobsNamed ? ", ..." : "",
                            ": name the team that gets them with --move-to");
}

void TeamHandler::On(const Request& request, protocol::ApplyTeams&& message) {
  const StatusOr<model::TeamPolicy> policy = ReadPolicy(message);
  const Status fits = policy.ok() ? CheckPolicy(message, *policy) : policy.status();
  if (!fits.ok()) return barrier_.Refuse(request, Annotate(fits, "apply teams"));
  const std::string to = message.move_to == model::kDefaultTeam ? "" : message.move_to;
  charges_.Write();  // teams of before owe it
  barrier_.Emit(ApplyTeamsRecord{std::move(message.policy), std::move(message.source),
                                 request.identity->key_name, to});
  fair_.SetPolicy(*policy);
  fair_.SetCapacity(worker_table_.Up());
  before_policy_ = book_.LastNumber();
  MoveJobs();
  places_.Recount();
  batch_.LookAgain();
  streams_.MarkAllChanged();
  barrier_.Answer(request, protocol::TeamsApplied{Warnings(fair_)});
}

void TeamHandler::MoveJobs() {
  for (auto& [id, job] : barrier_.table().mutable_jobs()) {
    if (IsEnded(job.state) || job.account == kNoAccount) continue;
    if (job.account != fair_.Of(job.team, job.submitter)) {
      batch_.TakeOut(job);
      job.account = kNoAccount;
      batch_.PutBack(job);
    }
    const AccountId account = AccountOf(fair_, job);
    if (Stream* const stream = streams_.Find(id); stream != nullptr) stream->account = account;
  }
}

std::uint64_t TeamHandler::WaitingMillis(const Job& job, std::uint64_t up_millis) const {
  std::uint64_t waiting = job.IsStream() ? 0 : job.OpenTasks() - job.tasks_running;
  if (const Stream* stream = streams_.Find(job.id); stream != nullptr) {
    for (const auto& [rank, trainer] : stream->trainers) waiting += trainer.pending.size();
  }
  return std::min(waiting * 1000, up_millis);
}

protocol::TeamsDescribed TeamHandler::Describe(const PeerIdentity& identity) {
  const Amounts up = worker_table_.Up();
  fair_.SetCapacity(up);  // a node may have come since the last tick
  const bool all = identity.role == Role::kOperator;
  const AppliedTeams& applied = barrier_.table().teams();
  const std::string own = ShownTeam(applied.at == 0 ? "" : identity.team);
  protocol::TeamsDescribed described;
  if (all) described.source = applied.source;
  if (applied.at != 0) described.digest = Sha256Of(applied.source);
  described.applied_by = applied.by;
  described.applied_at = applied.at;
  described.warnings = Warnings(fair_);
  struct Open {
    std::uint32_t jobs = 0;
    std::uint64_t waiting_millis = 0;
  };
  std::map<std::pair<std::string, std::string>, Open> open;
  for (const auto& [id, job] : barrier_.table().jobs()) {
    if (IsEnded(job.state)) continue;
    for (const std::string& user : {std::string(), job.submitter}) {
      Open& sum = open[{ShownTeam(job.team), user}];
      ++sum.jobs;
      sum.waiting_millis += WaitingMillis(job, up[kCores]);
    }
  }
  for (const FairShare::Standing& one : fair_.Standings()) {
    if (!all && one.team != own) continue;
    const Open& sum = open[{one.team, one.user}];
    protocol::TeamRow& row = described.rows.emplace_back(RowOf(one));
    row.wanted_cpu_millis += sum.waiting_millis;
    row.jobs_open = sum.jobs;
  }
  return described;
}

}  // namespace patchbay::scheduler
