#include "scheduler/policy/fair_share.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace patchbay::scheduler {
namespace {

/// The most that a member may have to catch up.
template <typename Member>
double LagOf(const Member& member) {
  return member.queued == 0 && member.held[kCores] == 0 ? kFairLagUs : kBusyLagUs;
}

/// Moves the entry to the place of its present key.
template <typename Key>
void Rekey(std::set<Key>& order, typename std::set<Key>::iterator& at, const Key& key) {
  if (*at == key) return;
  auto node = order.extract(at);
  node.value() = key;
  at = order.insert(std::move(node)).position;
}

/// Resources whose guarantees are met by what a team holds.
constexpr std::size_t kPromised[] = {kGpus, kMemory};

/// amount * of / whole, without an overflow.
std::uint64_t Scaled(std::uint64_t amount, std::uint64_t of, std::uint64_t whole) {
  return static_cast<std::uint64_t>(static_cast<double>(amount) * static_cast<double>(of) /
                                    static_cast<double>(whole));
}

}  // namespace

Amounts CapsOf(const model::TeamMost& most) {
  const auto cap = [](const auto& amount) -> std::uint64_t {
    return amount ? *amount : FairShare::kNoCap;
  };
  return {cap(most.cpu_millis), cap(most.gpus), cap(most.memory_bytes)};
}

void FairShare::SetPolicy(const model::TeamPolicy& policy) {
  policy_ = policy;
  if (policy.others) Of(model::kDefaultTeam, "");
  for (const auto& [name, rules] : policy.teams) Of(name, "");
  for (std::uint32_t id = 0; id < teams_.size(); ++id) {
    TakeRules(teams_[id]);
    teams_[id].virtual_us = now_us_;
    TeamMoved(id);
  }
  for (AccountId id = 0; id < accounts_.size(); ++id) {
    Account& account = accounts_[id];
    TakeRules(account);
    account.virtual_us = teams_[account.team].user_now_us;
    Moved(id);
  }
  ScaleGuarantees();
}

void FairShare::TakeRules(Team& team) {
  const model::TeamRules* rules = policy_.Find(team.name);
  const model::TeamRules none;
  if (rules == nullptr) rules = &none;
  team.weight_millis = rules->weight_millis;
  team.lend_percent = rules->lend_percent;
  team.most = CapsOf(rules->most);
}

void FairShare::TakeRules(Account& account) {
  account.most = kNoCaps;
  const model::TeamRules* rules = policy_.Find(teams_[account.team].name);
  if (rules == nullptr) return;
  const auto user = rules->users.find(account.user);
  if (user != rules->users.end()) {
    account.most = CapsOf(user->second.most);
  }
}

void FairShare::SetCapacity(const Amounts& up) {
  if (up == capacity_) return;
  capacity_ = up;
  ScaleGuarantees();
}

/// Guarantees beyond the whole are scaled in proportion.
void FairShare::ScaleGuarantees() {
  const auto wanted = [&](const Team& team) -> Amounts {
    const model::TeamRules* rules = policy_.Find(team.name);
    if (rules == nullptr) return {};
    const model::TeamGuarantee& own = rules->guaranteed;
    return {own.cpu_millis + capacity_[kCores] * own.cpu_percent / 100, own.gpus, own.memory_bytes};
  };
  guaranteed_ = {};
  for (Team& team : teams_) {
    team.guaranteed = wanted(team);
    for (std::size_t of = 0; of < kResources; ++of) guaranteed_[of] += team.guaranteed[of];
  }
  keepers_.clear();
  promises_ = guaranteed_[kGpus] != 0 || guaranteed_[kMemory] != 0;
  for (std::uint32_t id = 0; id < teams_.size(); ++id) {
    Team& team = teams_[id];
    for (std::size_t of = 0; of < kResources; ++of) {
      std::uint64_t& amount = team.guaranteed[of];
      if (IsScaled(of)) amount = Scaled(amount, capacity_[of], guaranteed_[of]);
      team.kept[of] = Scaled(amount, 100 - team.lend_percent, 100);
    }
    if (team.kept != Amounts{}) keepers_.push_back(id);
    Watch(team);
    TeamMoved(id);
  }
}

AccountId FairShare::Of(const std::string& team_name, const std::string& user) {
  const std::string& named = team_name.empty() ? model::kDefaultTeam : team_name;
  const auto [team, fresh_team] =
      team_ids_.emplace(named, static_cast<std::uint32_t>(teams_.size()));
  if (fresh_team) {
    Team& added = teams_.emplace_back();
    added.name = named;
    added.virtual_us = now_us_;
    TakeRules(added);
    if (guaranteed_ != Amounts{}) ScaleGuarantees();
  }
  const auto [account, fresh] =
      account_ids_.emplace(std::pair(team->second, user), static_cast<AccountId>(accounts_.size()));
  if (fresh) {
    Account& added = accounts_.emplace_back();
    added.team = team->second;
    added.user = user;
    added.virtual_us = teams_[team->second].user_now_us;
    TakeRules(added);
  }
  return account->second;
}

void FairShare::Advance(TimeMs now) {
  for (Team* team : std::exchange(began_to_wait_, {})) {
    if (team->reclaim.has_value()) team->reclaim->since = std::max(now, advanced_at_);
  }
  if (now <= advanced_at_) return;
  advanced_at_ = now;
  const double served_us = std::exchange(served_us_, 0);
  if (guaranteed_[kCores] == 0 || served_us == 0) return;
  for (std::uint32_t id = 0; id < teams_.size(); ++id) {
    Team& team = teams_[id];
    const auto millis = static_cast<double>(team.guaranteed[kCores]);
    if (millis == 0) continue;
    const double earned_us = served_us * millis / static_cast<double>(capacity_[kCores]);
    team.credit_us = std::min(team.credit_us + earned_us, millis / 1000 * kCreditUs);
    TeamMoved(id);
  }
}

void FairShare::Moved(AccountId id) {
  Account& account = accounts_[id];
  if (account.queued != 0 && !std::exchange(account.moved, true)) moved_.push_back(id);
}

void FairShare::TeamMoved(std::uint32_t id) {
  Team& team = teams_[id];
  if (team.queued != 0 && !std::exchange(team.moved, true)) moved_teams_.push_back(id);
}

void FairShare::Reorder() {
  for (const AccountId id : moved_) {
    Account& account = accounts_[id];
    if (!std::exchange(account.moved, false) || account.queued == 0) continue;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (account.places[kind].queues == 0) continue;
      Rekey(teams_[account.team].places[kind].order, account.places[kind].at, KeyOf(account, id));
    }
  }
  for (const std::uint32_t id : moved_teams_) {
    Team& team = teams_[id];
    if (!std::exchange(team.moved, false) || team.queued == 0) continue;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (team.places[kind].order.empty()) continue;
      Rekey(orders_[kind], team.places[kind].at, KeyOf(team, id));
    }
  }
  moved_.clear();
  moved_teams_.clear();
}

void FairShare::Enqueue(AccountId id, WorkKind kind) {
  const auto of = static_cast<std::size_t>(kind);
  Account& account = accounts_[id];
  if (account.places[of].queues++ != 0) return;
  Team& team = teams_[account.team];
  account.virtual_us = std::max(account.virtual_us, team.user_now_us - LagOf(account));
  if (account.queued++ == 0) account.use.when_queued_us = DecayedUs(account.use);
  if (team.queued == 0) {
    team.use.when_queued_us = DecayedUs(team.use) / static_cast<double>(team.weight_millis);
    team.virtual_us = std::max(team.virtual_us, now_us_ - Weighted(LagOf(team), team));
    if (team.wanted_at != advanced_at_) team.reclaim.reset();  // its last work was cancelled
  }
  ++team.queued;
  Watch(team);
  Team::Place& place = team.places[of];
  account.places[of].at = place.order.insert(KeyOf(account, id)).first;
  if (place.order.size() == 1) place.at = orders_[of].insert(KeyOf(team, account.team)).first;
  Moved(id);
  TeamMoved(account.team);
}

void FairShare::Dequeue(AccountId id, WorkKind kind) {
  const auto of = static_cast<std::size_t>(kind);
  Account& account = accounts_[id];
  if (--account.places[of].queues != 0) return;
  Team& team = teams_[account.team];
  Team::Place& place = team.places[of];
  place.order.erase(account.places[of].at);
  if (place.order.empty()) orders_[of].erase(place.at);
  --account.queued;
  --team.queued;
  team.wanted_at = advanced_at_;
}

bool FairShare::IsBefore(AccountId a, AccountId b) const {
  const Account& one = accounts_[a];
  const Account& other = accounts_[b];
  if (one.team != other.team) {
    return KeyOf(teams_[one.team], one.team) < KeyOf(teams_[other.team], other.team);
  }
  return KeyOf(one, a) < KeyOf(other, b);
}

bool FairShare::IsBehind(AccountId a, AccountId b) const {
  const Account& one = accounts_[a];
  const Account& other = accounts_[b];
  if (one.team == other.team) return one.virtual_us + kFairWindowUs < other.virtual_us;
  const Team& its = teams_[one.team];
  const Team& others = teams_[other.team];
  if (its.IsMet() != others.IsMet()) return others.IsMet();
  return its.virtual_us + Weighted(kFairWindowUs, its) < others.virtual_us;
}

void FairShare::Grant(AccountId id, std::int64_t estimate_us, WorkKind kind) {
  const auto cost = static_cast<double>(estimate_us);
  Account& account = accounts_[id];
  Team& team = teams_[account.team];
  double start = std::max(team.virtual_us, now_us_ - Weighted(LagOf(team), team));
  const double cores = static_cast<double>(team.guaranteed[kCores]) / 1000;
  if (team.IsMet()) {
    now_us_ = std::max(now_us_, start);
  } else {
    // Served by its guarantee, beyond its weight: that does not count against it for long.
    start = std::min(start, now_us_ + Weighted(kFairLagUs, team));
  }
  team.virtual_us = start + Weighted(cost, team);
  team.credit_us = std::max(team.credit_us, -cores * kCreditUs) - cost;
  const double user_start = std::max(account.virtual_us, team.user_now_us - LagOf(account));
  team.user_now_us = std::max(team.user_now_us, user_start);
  account.virtual_us = user_start + cost;
  Lead(account, cost, kind);
  TeamMoved(account.team);
  Moved(id);
}

void FairShare::Lead(Account& account, double more_us, WorkKind kind) {
  const double then = account.tasks_lead_us + (kind == WorkKind::kTasks ? more_us : -more_us);
  account.tasks_lead_us = std::clamp(then, -kOwnLeadUs, kOwnLeadUs);
}

void FairShare::Charge(AccountId id, std::int64_t cost_us, WorkKind kind) {
  Remember(id, cost_us, 0);
  served_us_ += static_cast<double>(cost_us);
  Add(id, cost_us, kind);
}

void FairShare::Remember(AccountId id, std::int64_t cost_us, std::int64_t age_s) {
  const double age = static_cast<double>(std::max<std::int64_t>(age_s, 0)) / policy_.half_life_s;
  for (Use* use : {&accounts_[id].use, &teams_[accounts_[id].team].use}) {
    use->us = DecayedUs(*use) + static_cast<double>(cost_us) * (age == 0 ? 1 : std::exp2(-age));
    use->at = advanced_at_;
  }
}

double FairShare::DecayedUs(const Use& use) const {
  if (use.at == advanced_at_) return use.us;
  const auto passed_ms = static_cast<double>(advanced_at_ - use.at);
  return use.us * std::exp2(-passed_ms / 1000 / policy_.half_life_s);
}

void FairShare::Add(AccountId id, std::int64_t more_us, WorkKind kind) {
  const auto more = static_cast<double>(more_us);
  Account& account = accounts_[id];
  Team& team = teams_[account.team];
  team.virtual_us += Weighted(more, team);
  team.credit_us -= more;
  account.virtual_us += more;
  Lead(account, more, kind);
  TeamMoved(account.team);
  Moved(id);
}

std::optional<FairShare::Refusal> FairShare::Forbids(AccountId id, const Claim& claim) const {
  const Account& account = accounts_[id];
  const Team& team = teams_[account.team];
  for (std::size_t of = 0; of < kResources; ++of) {
    if (of != kCores && claim.need[of] == 0) continue;
    const auto fits = [&](const auto& member) {
      return member.held[of] == 0 ? member.most[of] != 0
                                  : member.held[of] + claim.more[of] <= member.most[of];
    };
    if (!fits(team)) return Refusal{Refusal::By::kTeamCap, of, team.held[of], team.most[of]};
    if (!fits(account)) {
      return Refusal{Refusal::By::kUserCap, of, account.held[of], account.most[of]};
    }
  }
  return KeptFrom(account.team, claim.used);
}

/// Others leave as much unused as a team has not taken yet of what it does not lend.
std::optional<FairShare::Refusal> FairShare::KeptFrom(std::uint32_t team,
                                                      const Amounts& used) const {
  for (std::size_t of = 0; of < kResources && !keepers_.empty(); ++of) {
    if (used[of] == 0) continue;
    std::uint64_t kept = 0;
    const Team* lender = nullptr;
    for (const std::uint32_t id : keepers_) {
      const Team& keeper = teams_[id];
      if (id == team || keeper.held[of] >= keeper.kept[of]) continue;
      kept += keeper.kept[of] - keeper.held[of];
      lender = &keeper;
    }
    if (lender == nullptr || used_[of] + used[of] + kept <= capacity_[of]) continue;
    return Refusal{Refusal::By::kNotLent, of, lender->held[of], lender->kept[of]};
  }
  return std::nullopt;
}

std::optional<FairShare::Refusal> FairShare::Keeps(AccountId holder, AccountId other) const {
  const Team& team = teams_[accounts_[holder].team];
  const bool own = accounts_[holder].team == accounts_[other].team;
  const bool keeps = team.kept[kCores] != 0 && team.held[kCores] <= team.kept[kCores];
  if (own || !keeps) return std::nullopt;
  return Refusal{Refusal::By::kNotLent, kCores, team.held[kCores], team.kept[kCores]};
}

bool FairShare::HoldsOf(AccountId id, AccountId other, const Amounts& need) const {
  const Team& team = teams_[accounts_[id].team];
  const Team& lacking = teams_[accounts_[other].team];
  return std::any_of(std::begin(kPromised), std::end(kPromised), [&](std::size_t of) {
    return need[of] != 0 && lacking.Lacks(of) && team.held[of] > team.guaranteed[of];
  });
}

FairShare::Sums FairShare::WithWork() const {
  Sums sums;
  for (const Team& team : teams_) {
    if (!team.HadWork(advanced_at_)) continue;
    sums.weights += static_cast<double>(team.weight_millis);
    sums.guaranteed_millis += static_cast<double>(team.guaranteed[kCores]);
  }
  return sums;
}

double FairShare::ShareMillis(const Team& team, const Sums& sums) const {
  const auto all = static_cast<double>(capacity_[kCores]);
  const auto own = static_cast<double>(team.guaranteed[kCores]);
  const double others = sums.guaranteed_millis - (team.HadWork(advanced_at_) ? own : 0);
  const double by_weight = all * static_cast<double>(team.weight_millis) / sums.weights;
  return std::max(own, std::min(by_weight, all - others));
}

bool FairShare::MayStart(AccountId id, std::int64_t estimate_us, std::uint64_t more_millis) const {
  if (estimate_us <= policy_.lend_max_ms * std::int64_t{1000}) return true;
  const Sums sums = WithWork();
  const Team& own = teams_[accounts_[id].team];
  const int runs_on = own.runs_on + (more_millis == 0 ? 0 : 1);
  const double millis = static_cast<double>(own.runs_on_millis) + static_cast<double>(more_millis);
  if (!Exceeds(own, runs_on, millis, sums)) return true;
  // A team that has less than a core of its own takes turns with tasks that end in time.
  const bool goes_back = estimate_us >= policy_.reclaim_after_ms * std::int64_t{1000};
  // Beside shards it has half of each core.
  const bool squeezes = Exceeds(own, runs_on, (millis - kHalfCoreMillis) / 2, sums);
  return std::none_of(teams_.begin(), teams_.end(), [&](const Team& team) {
    return &team != &own && team.HadWork(advanced_at_) &&
           ((goes_back ? CouldHold(team, sums) : CouldHoldMore(team, sums)) ||
            (squeezes && WouldSqueeze(team, more_millis, sums)));
  });
}

/// A core that a task and shards share is half a core for shards.
bool FairShare::WouldSqueeze(const Team& team, std::uint64_t more_millis, const Sums& sums) const {
  if (advanced_at_ - team.stalled_at >= kLendAfterMs) return false;
  const auto others =
      static_cast<double>(run_on_millis_ - team.runs_on_millis) + static_cast<double>(more_millis);
  return static_cast<double>(capacity_[kCores]) - others / 2 + kFewMillis <=
         ShareMillis(team, sums);
}

void FairShare::Stall(AccountId id) {
  Team& team = teams_[accounts_[id].team];
  if (team.WaitIsOver(advanced_at_)) team.waits_since = advanced_at_;
  team.waits_at = advanced_at_;
  if (advanced_at_ - team.waits_since >= kStalledAfterMs) team.stalled_at = advanced_at_;
}

bool FairShare::AnyStalls() const {
  return std::any_of(teams_.begin(), teams_.end(),
                     [&](const Team& team) { return team.Stalls(advanced_at_); });
}

bool FairShare::IsSqueezed(std::uint32_t id, std::uint64_t has_millis) const {
  const Team& team = teams_[id];
  return team.Stalls(advanced_at_) &&
         static_cast<double>(has_millis + kFewMillis) <= ShareMillis(team, WithWork());
}

void FairShare::RunOn(AccountId id, int more_workers, std::int64_t more_millis) {
  Team& team = teams_[accounts_[id].team];
  team.runs_on += more_workers;
  team.runs_on_millis += more_millis;
  run_on_millis_ += more_millis;
}

bool FairShare::HoldsLent(AccountId id) const {
  const Team& team = teams_[accounts_[id].team];
  return Exceeds(team, team.runs_on, static_cast<double>(team.runs_on_millis), WithWork());
}

bool FairShare::IsOwed(AccountId id) const {
  const Team& team = teams_[accounts_[id].team];
  return !team.places[0].order.empty() && CouldHold(team, WithWork());
}

void FairShare::Hold(AccountId id, const Claim& claim) {
  Account& account = accounts_[id];
  Team& team = teams_[account.team];
  for (std::size_t of = 0; of < kResources; ++of) {
    account.held[of] += claim.more[of];
    team.held[of] += claim.more[of];
    used_[of] += claim.used[of];
  }
  CountReclaim(team);
  Watch(team, advanced_at_);
}

void FairShare::Release(AccountId id, const Amounts& less, const Amounts& freed) {
  Account& account = accounts_[id];
  Team& team = teams_[account.team];
  for (std::size_t of = 0; of < kResources; ++of) {
    account.held[of] -= less[of];
    team.held[of] -= less[of];
    used_[of] -= freed[of];
  }
  team.wanted_at = advanced_at_;
  Watch(team);
}

void FairShare::Watch(Team& team, TimeMs since) {
  const bool lacks = team.queued != 0 && team.held[kCores] + 1000 <= team.guaranteed[kCores];
  if (!lacks) team.reclaim.reset();
  if (!lacks || team.reclaim.has_value() || used_[kCores] + 1000 <= capacity_[kCores]) return;
  team.reclaim = {since, team.held[kCores]};
  if (since == ReclaimWait::kNotYet) began_to_wait_.push_back(&team);
}

void FairShare::CountReclaim(Team& team) {
  if (!team.reclaim.has_value() || team.held[kCores] <= team.reclaim->most_millis) return;
  team.reclaim->most_millis = team.held[kCores];
  // One that it got in the same turn it has not waited for.
  if (team.reclaim->since == ReclaimWait::kNotYet || team.reclaim->since == advanced_at_) return;
  ++team.reclaims;
  reclaim_times_.Add((advanced_at_ - team.reclaim->since) * 1'000'000);
}

/// Teams beyond their guarantee hold cores that nobody is guaranteed first.
std::map<std::string, TeamLending> FairShare::Lending() const {
  double spare = 0, beyond = 0, others = static_cast<double>(capacity_[kCores]);
  const auto over = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(a > b ? a - b : 0);
  };
  for (const Team& team : teams_) {
    spare += over(team.guaranteed[kCores], team.held[kCores]);
    beyond += over(team.held[kCores], team.guaranteed[kCores]);
    others -= static_cast<double>(team.guaranteed[kCores]);
  }
  const double lent = std::clamp(beyond - std::max(others, 0.0), 0.0, spare);
  const auto part = [&](double own, double all) {
    return lent == 0 ? 0 : static_cast<std::uint64_t>(std::llround(lent * own / all));
  };
  std::map<std::string, TeamLending> rows;
  for (const Team& team : teams_) {
    const TeamLending row{
        team.guaranteed[kCores], part(over(team.guaranteed[kCores], team.held[kCores]), spare),
        part(over(team.held[kCores], team.guaranteed[kCores]), beyond), team.reclaims};
    if (row.guaranteed_millis + row.borrowed_millis + row.reclaims != 0) rows[team.name] = row;
  }
  return rows;
}

std::vector<FairShare::Standing> FairShare::Standings() const {
  std::vector<Standing> rows;
  for (const auto& [name, team_id] : team_ids_) {
    const Team& team = teams_[team_id];
    const std::size_t whole = rows.size();
    rows.push_back({name, "", team.guaranteed, team.most, team.held,
                    static_cast<std::uint32_t>(team.weight_millis), 0, team.lend_percent});
    for (auto it = account_ids_.lower_bound({team_id, ""});
         it != account_ids_.end() && it->first.first == team_id; ++it) {
      const Account& account = accounts_[it->second];
      if (account.user.empty()) continue;
      const auto used_ms = static_cast<std::uint64_t>(std::max(DecayedUs(account.use), 0.0) / 1000);
      rows.push_back({name, account.user, {}, account.most, account.held, 1000, used_ms});
      rows[whole].used_ms += used_ms;
    }
  }
  return rows;
}

bool FairShare::IsSound() const {
  std::vector<std::uint32_t> queued[kKinds];
  for (auto& of_kind : queued) of_kind.resize(teams_.size());
  std::vector<Amounts> held(teams_.size());
  for (AccountId id = 0; id < accounts_.size(); ++id) {
    const Account& account = accounts_[id];
    for (std::size_t of = 0; of < kResources; ++of) held[account.team][of] += account.held[of];
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (account.places[kind].queues == 0) continue;
      ++queued[kind][account.team];
      if (!account.moved && *account.places[kind].at != KeyOf(account, id)) return false;
    }
  }
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    std::size_t ordered = 0;
    for (std::uint32_t id = 0; id < teams_.size(); ++id) {
      const Team& team = teams_[id];
      const Team::Place& place = team.places[kind];
      if (place.order.size() != queued[kind][id] || team.held != held[id]) return false;
      ordered += place.order.empty() ? 0 : 1;
      const bool known = place.order.empty() || team.moved || *place.at == KeyOf(team, id);
      if (!known || team.queued != queued[0][id] + queued[1][id]) return false;
    }
    if (ordered != orders_[kind].size()) return false;
  }
  return true;
}

}  // namespace patchbay::scheduler
