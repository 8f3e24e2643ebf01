// patchbay_sim: runs seeds of the simulated cluster; replays one with --seed N --trace;
// --stop ends at the first violation; --calm draws no faults; --lean those that once found a bug;
// --maps has streams with units and consumers; --teams several users and changing policies;
// --shares compares the shares of users with what is due to them; --lending has long tasks on lent
// cores; --whys carries out the answers of `why` on copies; --ghosts ends everything at
// times, some of it for good;
// --crash-at K ends the scheduler at record K.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/sim/share_run.h"
#include "tests/sim/sim_world.h"
#include "tests/sim/why_run.h"

namespace {

using patchbay::sim::Coverage;
using patchbay::sim::RunOptions;
using patchbay::sim::RunResult;
using patchbay::sim::RunSeed;

struct Arguments {
  std::uint64_t first = 1, count = 1;
  std::uint64_t crash_at = 0;
  bool trace = false, large = false, stop = false, calm = false, lean = false, ghosts = false;
  bool maps = false, costs = false, teams = false, shares = false, lending = false, whys = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    if (word == "--seed" && more) arguments.first = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--count" && more) arguments.count = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--crash-at" && more) arguments.crash_at = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--calm") arguments.calm = true;
    if (word == "--lean") arguments.lean = true;
    if (word == "--ghosts") arguments.ghosts = true;
    if (word == "--maps") arguments.maps = true;
    if (word == "--costs") arguments.costs = true;
    if (word == "--teams") arguments.teams = true;
    if (word == "--shares") arguments.shares = true;
    if (word == "--lending") arguments.lending = true;
    if (word == "--whys") arguments.whys = true;
    if (word == "--trace") arguments.trace = true;
    if (word == "--stop") arguments.stop = true;
    if (word == "--large") arguments.large = true;
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  Coverage coverage;
  std::uint64_t bad = 0, events = 0, tasks = 0, batches = 0;
  for (std::uint64_t i = 0; i < arguments.count; ++i) {
    RunOptions options;
    options.seed = arguments.first + i;
    options.trace = arguments.trace;
    options.large = arguments.large;
    options.calm = arguments.calm;
    options.lean = arguments.lean;
    options.ghosts = arguments.ghosts;
    options.maps = arguments.maps;
    options.costs = arguments.costs;
    options.teams = arguments.teams;
    options.crash_at_record = arguments.crash_at;
    const RunResult result = arguments.lending ? patchbay::sim::RunLending(options.seed)
                             : arguments.shares
                                 ? patchbay::sim::RunShares(options.seed, options.trace)
                             : arguments.whys ? patchbay::sim::RunWhys(options.seed, options.trace)
                                              : RunSeed(options);
    events += result.events;
    tasks += result.tasks;
    batches += result.batches;
    for (const auto& [fault, times] : result.coverage) coverage[fault] += times;
    if (!result.violation.empty()) {
      ++bad;
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(result.seed),
                  result.violation.c_str());
      std::fflush(stdout);
      if (arguments.stop) break;
    }
    if (arguments.count == 1) {
      std::printf("seed %llu: trace hash %016llx\n", static_cast<unsigned long long>(result.seed),
                  static_cast<unsigned long long>(result.trace_hash));
    }
  }
  std::printf("%llu seeds, %llu with violations, %llu events, %llu tasks, %llu batches\n",
              static_cast<unsigned long long>(arguments.count),
              static_cast<unsigned long long>(bad), static_cast<unsigned long long>(events),
              static_cast<unsigned long long>(tasks), static_cast<unsigned long long>(batches));
  for (const auto& [fault, times] : coverage) {
    std::printf("  %-34s %llu\n", fault.c_str(), static_cast<unsigned long long>(times));
  }
  return bad == 0 ? 0 : 1;
}
