// Order of service between teams and their users: caps, then guarantees not met, then least
// weighted virtual time.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/clock.h"
#include "runtime/model/jobs/team_policy.h"
#include "scheduler/policy/amounts.h"
#include "scheduler/policy/lending.h"
#include "scheduler/policy/limits.h"

namespace patchbay::scheduler {

/// A user of a team.
using AccountId = std::uint32_t;
inline constexpr AccountId kNoAccount = std::numeric_limits<AccountId>::max();

/// The queues in which an account may have work.
enum class WorkKind : std::uint8_t { kTasks, kShards };

/// Start-time fair queueing of processor time on two levels, teams and the users of a team. A
/// member's virtual time is what it was charged, by its weight. A member that was idle
/// continues at most kFairLagUs behind those that are served: idle time earns nothing, and use of
/// what nobody else wanted costs nothing. The one that used least, decayed, is first among those
/// that have waited alike.
///
/// A team with a guarantee earns credit, at most that of a second: of all processor time that is
/// charged, its part of the cores that are up. As long as it has some, it goes before the teams
/// that have none. Earned by the clock, it would never be spent where cores are slow or wait for
/// storage, and all others would starve. A guarantee of GPUs or memory is met by what the team
/// holds: while it holds less, its work that needs some goes before all other work. Invariants: the
/// orders have exactly the teams and accounts that are queued, under their present keys but for
/// those that moved since they were last read; a team holds what its accounts hold.
class FairShare {
 public:
  FairShare() { SetPolicy({}); }

  /// Every team and account starts over at the same virtual time.
  void SetPolicy(const model::TeamPolicy& policy);
  /// Resources that are up, by which percentages are taken and guarantees beyond the whole are
  /// scaled.
  void SetCapacity(const Amounts& up);
  /// The same number for the same names. A team that no policy names has weight 1.
  AccountId Of(const std::string& team, const std::string& user);
  const std::string& TeamOf(AccountId id) const { return teams_[accounts_[id].team].name; }
  const std::string& UserOf(AccountId id) const { return accounts_[id].user; }
  std::uint32_t TeamIdOf(AccountId id) const { return accounts_[id].team; }
  /// Guarantees earn credit by what was charged until now.
  void Advance(TimeMs now);

  /// The account has work in one more queue, or in one less.
  void Enqueue(AccountId id, WorkKind kind = WorkKind::kTasks);
  void Dequeue(AccountId id, WorkKind kind = WorkKind::kTasks);
  /// Calls visit(account) for accounts with queued work of that kind, the first to be served first,
  /// until it is true.
  template <typename Visit>
  bool AnyInOrder(const Visit& visit, WorkKind kind = WorkKind::kTasks) {
    Reorder();
    const auto of = static_cast<std::size_t>(kind);
    for (const TeamKey& key : orders_[of]) {
      for (const AccountKey& user : teams_[std::get<3>(key)].places[of].order) {
        if (visit(std::get<2>(user))) return true;
      }
    }
    return false;
  }
  /// The same of accounts whose team holds less GPUs or memory than it is guaranteed.
  template <typename Visit>
  bool AnyShortInOrder(const Visit& visit, WorkKind kind = WorkKind::kTasks) {
    return promises_ && AnyInOrder([&](AccountId id) { return IsShort(id) && visit(id); }, kind);
  }
  bool IsShort(AccountId id) const {
    const Team& team = teams_[accounts_[id].team];
    return team.Lacks(kGpus) || team.Lacks(kMemory);
  }
  /// Whether its team holds less than it is guaranteed of GPUs or memory that the work needs.
  bool IsShort(AccountId id, const Amounts& need) const {
    const Team& team = teams_[accounts_[id].team];
    return (need[kGpus] != 0 && team.Lacks(kGpus)) || (need[kMemory] != 0 && team.Lacks(kMemory));
  }
  /// Whether it holds more than it is guaranteed of GPUs or memory that the other's team lacks, and
  /// that other's work needs.
  bool HoldsOf(AccountId id, AccountId other, const Amounts& need) const;
  /// Whether `a` is served before `b`.
  bool IsBefore(AccountId a, AccountId b) const;
  /// Whether `a` is served before `b`, and not only by a grant or two.
  bool IsBehind(AccountId a, AccountId b) const;

  /// Whether the account's tasks have used no more than its shards lately.
  bool TasksAreBehind(AccountId id) const { return accounts_[id].tasks_lead_us <= 0; }

  /// The account is given work of that estimate.
  void Grant(AccountId id, std::int64_t estimate_us, WorkKind kind = WorkKind::kTasks);
  /// Work of that estimate has ended in any way: its cost is charged apart.
  void Refund(AccountId id, std::int64_t estimate_us, WorkKind kind = WorkKind::kTasks) {
    Add(id, -estimate_us, kind);
  }
  /// The cost of work that has ended.
  void Charge(AccountId id, std::int64_t cost_us, WorkKind kind = WorkKind::kTasks);
  /// The same of so long ago, for the order of those that wait alike.
  void Remember(AccountId id, std::int64_t cost_us, std::int64_t age_s);

  /// A rule that forbids work.
  struct Refusal {
    enum class By : std::uint8_t { kTeamCap, kUserCap, kNotLent } by = By::kTeamCap;
    std::size_t resource = kCores;
    std::uint64_t held = 0, most = 0;  ///< most: of the cap, or that the lender keeps
  };
  /// The cap of its team or user that forbids such work, or the team that does not lend what it
  /// needs. One that holds none of a resource may take any, as far as caps go.
  std::optional<Refusal> Forbids(AccountId id, const Claim& claim) const;
  bool MayHold(AccountId id, const Claim& claim) const { return !Forbids(id, claim).has_value(); }
  /// Whether its caps leave it any more cores at all.
  bool MayHoldAny(AccountId id) const { return MayHold(id, {{1}, {1}, {}}); }
  /// Whether any team lends less than its whole guarantee.
  bool KeepsAny() const { return !keepers_.empty(); }
  /// Whether another team is kept from a core that the first one holds of what it does not lend.
  std::optional<Refusal> Keeps(AccountId holder, AccountId other) const;
  /// Whether a task of that estimate may start on so many more cores: of the share of the team,
  /// whose shards do not count, or lent for no longer than lend_max, or for any time when nobody
  /// could want them. A team could want a core of its share when it had work less than kLendAfterMs
  /// ago. Costs O(teams) for long tasks.
  bool MayStart(AccountId id, std::int64_t estimate_us, std::uint64_t more_millis) const;
  /// Whether the tasks of the account's team run on more than its share. Costs O(teams), as the
  /// next.
  bool HoldsLent(AccountId id) const;
  /// Whether it has work queued, and is a core below its share, or has none of a share.
  bool IsOwed(AccountId id) const;
  /// A trainer of the account waits for a batch now.
  void Stall(AccountId id);
  /// Whether a trainer of any team has waited for each batch for kStalledAfterMs.
  bool AnyStalls() const;
  /// Whether one of the team has, and the team has so much less than its share: of a core that a
  /// task and shards use it has a part.
  bool IsSqueezed(std::uint32_t team, std::uint64_t has_millis) const;
  /// Whether the team keeps its share, to a quarter of a core, without the half that a task has
  /// beside shards.
  bool HasBeyond(std::uint32_t team, std::uint64_t has_millis) const {
    const double least = static_cast<double>(has_millis) - kHalfCoreMillis / 2;
    return Exceeds(teams_[team], teams_[team].runs_on, least, WithWork());
  }
  TimeMs reclaim_after_ms() const { return policy_.reclaim_after_ms; }
  void Hold(AccountId id, const Claim& claim);
  /// Its tasks run on workers more, or fewer, or on more of their cores.
  void RunOn(AccountId id, int more_workers, std::int64_t more_millis);
  /// No longer holds so much, which frees so much of its worker.
  void Release(AccountId id, const Amounts& less, const Amounts& freed);
  const Amounts& used() const { return used_; }

  /// A team or a user of it, for people.
  struct Standing {
    std::string team, user;                         ///< user empty: the team as a whole
    Amounts guaranteed = {}, most = {}, held = {};  ///< most kNoCap: none
    std::uint32_t weight_millis = 1000;
    std::uint64_t used_ms = 0;  ///< processor time, decayed
    std::uint32_t lend_percent = 100;
  };
  static constexpr std::uint64_t kNoCap = std::numeric_limits<std::uint64_t>::max();
  /// Every team, followed by its users.
  std::vector<Standing> Standings() const;
  /// By name, of teams with a guarantee and those that hold cores of others' guarantees.
  std::map<std::string, TeamLending> Lending() const;
  /// Waits of teams for cores of their guarantee, one for each core that came back.
  const ReclaimTimes& reclaim_times() const { return reclaim_times_; }
  /// Whether guarantees are beyond what is up.
  bool IsScaled(std::size_t resource) const { return guaranteed_[resource] > capacity_[resource]; }
  bool IsScaled() const { return IsScaled(kCores) || IsScaled(kGpus) || IsScaled(kMemory); }
  /// Whether the sets agree with the members. Slow: for tests and the simulator.
  bool IsSound() const;

 private:
  static constexpr std::size_t kKinds = 2;
  static constexpr Amounts kNoCaps = {kNoCap, kNoCap, kNoCap};
  static constexpr TimeMs kLongAgo = -kLendAfterMs;
  /// Met guarantee, virtual time, decayed use when it was queued, team.
  using TeamKey = std::tuple<bool, double, double, std::uint32_t>;
  using AccountKey = std::tuple<double, double, AccountId>;
  /// Processor time that was charged, decayed.
  struct Use {
    double us = 0;
    TimeMs at = 0;
    double when_queued_us = 0;
  };
  struct Account {
    std::uint32_t team = 0;
    std::uint32_t queued = 0;  ///< queues of all kinds
    std::string user;
    double virtual_us = 0;
    double tasks_lead_us = 0;  ///< use of its tasks beyond that of its shards, at most kOwnLeadUs
    Use use;
    Amounts held = {}, most = kNoCaps;
    struct Place {
      std::uint32_t queues = 0;
      std::set<AccountKey>::iterator at;  ///< while it has any
    } places[kKinds];
    bool moved = false;
  };
  struct Team {
    std::string name;
    std::uint32_t queued = 0;     ///< its queued accounts, once for each kind
    TimeMs wanted_at = kLongAgo;  ///< it had work last
    double virtual_us = 0;
    Use use;
    double user_now_us = 0;  ///< virtual time of its users
    std::uint64_t weight_millis = 1000;
    std::uint32_t lend_percent = 100;
    Amounts guaranteed = {};  ///< in force
    Amounts kept = {};        ///< part of its guarantee that it does not lend
    double credit_us = 0;
    Amounts held = {}, most = kNoCaps;
    struct Place {
      std::set<AccountKey> order;
      std::set<TeamKey>::iterator at;  ///< while `order` has any
    } places[kKinds];
    bool moved = false;
    int runs_on = 0;                  ///< workers that have tasks of it
    std::int64_t runs_on_millis = 0;  ///< their cores
    /// A trainer of it waits for each batch: since then, as was seen last then, and for
    /// kStalledAfterMs last then.
    TimeMs waits_since = 0, waits_at = kLongAgo, stalled_at = kLongAgo;
    std::optional<ReclaimWait> reclaim;
    std::uint64_t reclaims = 0;

    bool Stalls(TimeMs now) const { return stalled_at == waits_at && !WaitIsOver(now); }
    bool WaitIsOver(TimeMs now) const { return now - waits_at > kStalledAfterMs / 4; }
    bool HadWork(TimeMs now) const {
      return queued != 0 || held[kCores] != 0 || now - wanted_at < kLendAfterMs;
    }
    bool IsMet() const { return guaranteed[kCores] == 0 || credit_us <= 0; }
    bool Lacks(std::size_t resource) const { return held[resource] < guaranteed[resource]; }
  };

  static double Weighted(double us, const Team& team) {
    return us * 1000 / static_cast<double>(team.weight_millis);
  }
  static TeamKey KeyOf(const Team& team, std::uint32_t id) {
    return {team.IsMet(), team.virtual_us, team.use.when_queued_us, id};
  }
  static AccountKey KeyOf(const Account& account, AccountId id) {
    return {account.virtual_us, account.use.when_queued_us, id};
  }
  void TakeRules(Team& team);
  void TakeRules(Account& account);
  std::optional<Refusal> KeptFrom(std::uint32_t team, const Amounts& used) const;
  /// Sums over the teams that had work lately, which have a share of the cores.
  struct Sums {
    double weights = 0, guaranteed_millis = 0;
  };
  Sums WithWork() const;
  /// Whether so much is more than its share. The only worker that runs tasks of a team with any
  /// share is never too much.
  bool Exceeds(const Team& team, int runs_on, double millis, const Sums& sums) const {
    const double share = ShareMillis(team, sums);
    return (runs_on > 1 || share < 1) && millis > share;
  }
  /// Whether one more core is of its share.
  bool CouldHoldMore(const Team& team, const Sums& sums) const {
    return static_cast<double>(team.held[kCores] + 1000) <= ShareMillis(team, sums);
  }
  /// The same where the first core is of any share.
  bool CouldHold(const Team& team, const Sums& sums) const {
    return team.held[kCores] == 0 ? ShareMillis(team, sums) >= 1 : CouldHoldMore(team, sums);
  }
  /// Whether its trainers stalled lately, and would have less than its share beside tasks of others
  /// on so many more cores.
  bool WouldSqueeze(const Team& team, std::uint64_t more_millis, const Sums& sums) const;
  /// By its weight, of what others' guarantees leave; at least its own guarantee.
  double ShareMillis(const Team& team, const Sums& sums) const;
  /// Its key has changed, perhaps: its place is found again when the order is read.
  void Moved(AccountId id);
  void TeamMoved(std::uint32_t id);
  void Reorder();
  /// The team's demand, cores or guarantee have changed: it waits for its guarantee since then, or
  /// no longer.
  void Watch(Team& team, TimeMs since = ReclaimWait::kNotYet);
  /// The team was given a core, perhaps one that it waited for.
  void CountReclaim(Team& team);
  void ScaleGuarantees();
  void Add(AccountId id, std::int64_t more_us, WorkKind kind);
  static void Lead(Account& account, double more_us, WorkKind kind);
  double DecayedUs(const Use& use) const;

  model::TeamPolicy policy_;
  std::deque<Team> teams_;
  std::vector<Account> accounts_;
  std::map<std::string, std::uint32_t> team_ids_;
  std::map<std::pair<std::uint32_t, std::string>, AccountId> account_ids_;
  std::set<TeamKey> orders_[kKinds];
  std::vector<AccountId> moved_;
  std::vector<std::uint32_t> moved_teams_;
  std::vector<Team*> began_to_wait_;  ///< in the event that is handled
  ReclaimTimes reclaim_times_;
  double now_us_ = 0;               ///< virtual time of the teams
  std::int64_t run_on_millis_ = 0;  ///< sum over the teams
  double served_us_ = 0;            ///< charged to all since guarantees earned by it
  TimeMs advanced_at_ = 0;
  Amounts capacity_ = {}, guaranteed_ = {};
  Amounts used_ = {};                   ///< sum over the workers
  std::vector<std::uint32_t> keepers_;  ///< teams that lend less than their whole guarantee
  bool promises_ = false;               ///< some team is guaranteed GPUs or memory
};

/// FairShare::kNoCap where there is none.
Amounts CapsOf(const model::TeamMost& most);

}  // namespace patchbay::scheduler
