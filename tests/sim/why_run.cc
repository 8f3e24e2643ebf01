#include "tests/sim/why_run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/sim/why_site.h"

namespace patchbay::sim {
namespace {

using protocol::JobExplained;

constexpr int kSteps = 60, kLooks = 3, kMostChanges = 60;
/// A worker that was passed over is looked at again when the scheduler next ticks.
constexpr TimeMs kTickMs = 100;
/// Causes that other work is, so that one change of them may let another job go first.
constexpr std::string_view kBusy[] = {"priority", "share", "memory", "gpus", "planning", "suspect"};

std::string Fact(const JobExplained& why, const std::string& name) {
  for (const auto& fact : why.facts) {
    if (fact.name == name) return fact.text;
  }
  return "";
}

/// The text behind the mark, up to a blank or comma; empty: it has no such mark.
std::string After(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  const std::size_t from = at + mark.size();
  return text.substr(from, text.find_first_of(" ,", from) - from);
}

class WhyRun {
 public:
  WhyRun(std::uint64_t seed, bool trace) : seed_(seed), trace_(trace), dice_(seed + (1ull << 40)) {
    result_.seed = seed;
  }

  RunResult Run() {
    for (int look = 0; look < kLooks && result_.violation.empty(); ++look) {
      LookAt(static_cast<int>(dice_.Between(kSteps / 4, kSteps)));
    }
    return result_;
  }

 private:
  void Broken(const std::string& what) {
    if (result_.violation.empty()) result_.violation = StrCat("I24: ", what);
  }
  std::unique_ptr<Site> CopyAt(int step) {
    auto site = std::make_unique<Site>(seed_);
    for (int i = 0; i < step && site->broken().empty(); ++i) site->Step();
    result_.events += static_cast<std::uint64_t>(step);
    return site;
  }
  void LookAt(int step) {
    const auto site = CopyAt(step);
    if (!site->broken().empty()) return Broken(site->broken());
    const Status sound = site->core().CheckInvariants();
    if (!sound.ok()) return Broken(std::string(MessageOf(sound)));
    std::map<JobId, JobExplained> waiting;
    std::vector<JobId> without;  ///< jobs that start with the next tick
    for (const auto& [id, job] : site->jobs()) {
      const JobExplained why = site->Why(id, site->users()[job.user].peer);
      const protocol::JobRow row = site->Row(id);
      if (why.cause != row.cause)
        Broken(StrCat("job ", id, ": ", why.cause, ", its row ", row.cause));
      if (!why.cause.empty()) {
        waiting[id] = why;
        CheckNames(*site, job, why);
      } else if (!job.is_stream && row.finished_at == 0 && row.tasks_running == 0) {
        without.push_back(id);
      }
    }
    for (const JobId id : without) {
      const auto copy = CopyAt(step);
      copy->Pass(kTickMs);
      const protocol::JobRow row = copy->Row(id);
      if (row.tasks_running == 0 && row.cause.empty() && row.finished_at == 0) {
        Broken(StrCat("job ", id, " waits for no reason"));
      }
    }
    for (const auto& [id, why] : waiting) StaysWithout(*site, id, why);
    for (const auto& [id, why] : waiting) Follow(step, id);
  }
  /// Without any change nothing starts, in that turn and the tick after it. A lease or a stream
  /// that ends by time is a change.
  void StaysWithout(Site& site, JobId id, const JobExplained& why) {
    const bool by_time =
        why.cause == "backoff" || why.cause == "recovery" || why.cause == "suspect";
    const std::uint64_t before = site.Given(id), ends = site.kills() + site.failures();
    site.Change(protocol::DescribeCluster{});
    if (!by_time) site.Pass(kTickMs);
    if (site.Given(id) == before || site.kills() + site.failures() != ends) return;
    Broken(StrCat("job ", id, ", ", why.cause, ": it starts by itself"));
  }
  void CheckNames(const Site& site, const SiteJob& job, const JobExplained& why) {
    for (const auto& fact : why.facts) {
      bool told = fact.text.find("secret") != std::string::npos;
      for (std::size_t u = 0; u < site.users().size(); ++u) {
        told = told || (u != job.user && fact.text.find(site.users()[u].name) != std::string::npos);
      }
      if (told) Broken(StrCat("job ", job.id, " is told ", fact.text));
    }
  }

  /// Makes the changes that the answers name, one after the other, until the job starts.
  void Follow(int step, JobId id) {
    const auto site = CopyAt(step);
    std::string last;
    for (int change = 0; change < kMostChanges; ++change) {
      const JobExplained why = site->Why(id, site->users()[site->jobs().at(id).user].peer);
      const std::string text = StrCat("seed ", seed_, " step ", step, " job ", id, ": ", why.cause,
                                      ": ", Fact(why, "held by"), "; starts ", Fact(why, "starts"));
      if (trace_) std::fprintf(stderr, "%s\n", text.c_str());
      if (trace_) site->Print();
      if (why.cause.empty() && site->Holds(id)) return;  // some of it ran meanwhile
      if (why.cause.empty() && site->WantsNothing(id)) return;
      if (why.cause.empty()) {
        const std::uint64_t before = site->Given(id);
        site->Pass(kTickMs);
        if (site->Given(id) != before) return;
        if (!site->Why(id, site->users()[site->jobs().at(id).user].peer).cause.empty()) continue;
        return Broken(StrCat(last, "; then it neither starts nor waits"));
      }
      const bool busy = std::find(std::begin(kBusy), std::end(kBusy), why.cause) != std::end(kBusy);
      if (!busy && text == last) return Broken(StrCat(text, ": the change does nothing"));
      last = text;
      if (change == 0) ++result_.coverage[why.cause];
      const std::uint64_t before = site->Given(id);
      if (!Make(*site, id, why)) return Broken(StrCat(text, ": nobody knows how"));
      if (!site->broken().empty()) return Broken(site->broken());
      if (site->Given(id) == before) continue;
      if (change == 0) ++result_.coverage[StrCat(why.cause, ", at once")];
      return;
    }
    Broken(StrCat(last, ": never starts"));
  }

  /// Work that holds cores ends, and is not followed by more of its job.
  template <typename Of>
  bool EndThose(Site& site, JobId id, const Of& of) {
    bool any = false;
    const std::uint64_t before = site.Given(id);
    for (const auto& [other, job] : site.jobs()) {
      if (other == id || !site.Holds(other) || site.Row(other).finished_at != 0 || !of(job))
        continue;
      any = true;
      site.End(other);
      if (site.Given(id) != before) break;
    }
    return any;
  }

  bool Make(Site& site, JobId id, const JobExplained& why) {
    const SiteJob& job = site.jobs().at(id);
    const std::string starts = Fact(why, "starts"), held = Fact(why, "held by");
    const std::string team = site.Row(id).team;
    if (starts.find("joins") != std::string::npos) {
      site.AddNode(job.host, job.is_stream ? job.numerics : Numerics::kCpu);
      return true;
    }
    if (const std::string node = After(starts, "patchbay node resume "); !node.empty()) {
      site.Change(protocol::ChangeNode{node, protocol::NodeChange::kResume, ""});
      return true;
    }
    if (const std::string held_job = After(starts, "patchbay release "); !held_job.empty()) {
      site.Change(protocol::ChangeJob{std::strtoull(held_job.c_str(), nullptr, 10),
                                      protocol::JobChange::kRelease});
      return true;
    }
    if (starts.find("that team lends more") != std::string::npos) {
      for (auto& [name, rules] : site.policy().teams) {
        if (name != team) rules.lend_percent = 100;
      }
      site.ApplyPolicy();
      return true;
    }
    if (const std::string key = After(starts, "with more as "); !key.empty()) {
      model::TeamRules& rules = site.policy().teams.at(team);
      const std::string user = site.users()[job.user].name;
      if (key == StrCat("teams.", team, ".users.", user, ".most.cores")) {
        rules.users.at(user).most.cpu_millis.reset();
      } else if (key == StrCat("teams.", team, ".most.cores")) {
        rules.most.cpu_millis.reset();
      } else if (key == StrCat("teams.", team, ".most.streams")) {
        rules.most.streams.reset();
      } else if (key == StrCat("teams.", team, ".most.gpus")) {
        rules.most.gpus.reset();
      } else if (key == StrCat("teams.", team, ".most.memory")) {
        rules.most.memory_bytes.reset();
      } else if (key == StrCat("teams.", team, ".users.", user, ".most.gpus")) {
        rules.users.at(user).most.gpus.reset();
      } else {
        return false;
      }
      site.ApplyPolicy();
      return true;
    }
    if (why.cause == "backoff") {
      const long seconds = std::strtol(After(starts, "in ").c_str(), nullptr, 10);
      if (seconds == 0) return false;
      site.Pass(1000 * seconds);
      return true;
    }
    if (why.cause == "trainer_absent") {
      site.AttachTrainer(id);
      return true;
    }
    if (why.cause == "recovery") {
      site.ComeBack();
      return true;
    }
    if (why.cause == "planning") return site.FinishPlanning();
    return EndWork(site, id, why);
  }
  /// The changes of causes that other work is.
  bool EndWork(Site& site, JobId id, const JobExplained& why) {
    const SiteJob& job = site.jobs().at(id);
    const std::string held = Fact(why, "held by");
    const std::string team = site.Row(id).team;
    if (const std::string node = After(held, "node "); why.cause == "suspect" && !node.empty()) {
      site.Answer(node);
      return true;
    }
    if (why.cause == "share" && held.find("lend_max") != std::string::npos) {
      const auto own = [&](const SiteJob& one) { return site.Row(one.id).team == team; };
      if (EndThose(site, id, own)) return true;
      for (const auto& [other, one] : site.jobs()) {
        if (!own(one)) site.End(other);
      }
      site.Pass(61'000);
      return true;
    }
    if (why.cause == "share" || why.cause == "priority") {
      return EndThose(site, id, [&](const SiteJob& one) {
        const std::string other = site.Row(one.id).team;
        if (other != team) return held.find(StrCat("of team ", other)) != std::string::npos;
        if (one.user != job.user) return held.find("of other users") != std::string::npos;
        return held.find(StrCat(" ", one.id, " (")) != std::string::npos;
      });
    }
    if (why.cause == "suspect") {
      for (const auto& [other, one] : site.jobs()) {
        if (other != id && (site.Holds(other) || site.Row(other).cause == "suspect"))
          site.End(other);
      }
      site.Pass(300);  // a worker is kept until the next tick but one
      return true;
    }
    if (EndThose(site, id, [](const SiteJob&) { return true; })) return true;
    site.ComeBack();  // workers that do not answer have the rest
    return true;
  }

  const std::uint64_t seed_;
  const bool trace_;
  Dice dice_;
  RunResult result_;
};

}  // namespace

RunResult RunWhys(std::uint64_t seed, bool trace) { return WhyRun(seed, trace).Run(); }

}  // namespace patchbay::sim
