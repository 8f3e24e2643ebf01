// A program of a user's: opens runs by the client library in the ways that programs do.
//   patchbay-test-opener RUN.yaml BATCHES [--thread] [--reap] [--twice] [--fork-and-wait] [--rank R
//   --world-size W]
// Says "taken N TOKEN" for each run once its batches are in; with --fork-and-wait it forks then,
// says "forked PID" and waits to be killed.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/all_ops.h"
#include "runtime/client/open_run.h"

namespace {

namespace client = patchbay::client;

struct Wishes {
  std::string run;
  int batches = 0;
  bool thread = false, reap = false, twice = false, fork_and_wait = false;
  std::uint32_t rank = 0, world_size = 1;
};

Wishes ReadWishes(const std::vector<std::string>& words) {
  Wishes wishes;
  wishes.run = words.at(0);
  wishes.batches = std::stoi(words.at(1));
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--thread") wishes.thread = true;
    if (words[i] == "--reap") wishes.reap = true;
    if (words[i] == "--twice") wishes.twice = true;
    if (words[i] == "--fork-and-wait") wishes.fork_and_wait = true;
    if (words[i] == "--rank") wishes.rank = static_cast<std::uint32_t>(std::stoi(words.at(++i)));
    if (words[i] == "--world-size") {
      wishes.world_size = static_cast<std::uint32_t>(std::stoi(words.at(++i)));
    }
  }
  return wishes;
}

std::unique_ptr<client::Run> Open(const Wishes& wishes) {
  client::RunOptions options;
  options.source.file = wishes.run;
  options.cluster.environment = client::ReadEnvironment(environ, patchbay::ops::Table());
  options.cluster.may_start = true;
  options.cluster.cpus = 1;
  options.rank = wishes.rank;
  options.world_size = wishes.world_size;
  auto run = client::OpenRun(options);
  if (!run.ok()) {
    std::fprintf(stderr, "%s\n", patchbay::Describe(run.status()).c_str());
    std::exit(1);
  }
  return *std::move(run);
}

void Take(client::Run& run, int batches) {
  std::uint64_t patches = 0;
  for (int i = 0; i < batches; ++i) {
    const auto batch = run.stream->Next(60'000);
    if (!batch.ok()) {
      std::fprintf(stderr, "%s\n", patchbay::Describe(run.Explain(batch.status())).c_str());
      std::exit(1);
    }
    patches += batch->count();
  }
  std::printf("taken %llu %s\n", static_cast<unsigned long long>(patches),
              run.stream->ResumeToken().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Wishes wishes = ReadWishes({argv + 1, argv + argc});
  std::atomic<bool> ending = false;
  std::thread reaper;
  if (wishes.reap) {
    reaper = std::thread([&ending] {
      while (!ending) {
        if (waitpid(-1, nullptr, WNOHANG) <= 0) poll(nullptr, 0, 1);
      }
    });
  }
  std::vector<std::unique_ptr<client::Run>> runs(wishes.twice ? 2 : 1);
  for (auto& run : runs) {
    if (wishes.thread) {
      std::thread([&] { run = Open(wishes); }).join();
    } else {
      run = Open(wishes);
    }
  }
  for (auto& run : runs) Take(*run, wishes.batches);
  if (wishes.fork_and_wait) {
    const pid_t child = fork();
    if (child > 0) std::printf("forked %d\n", static_cast<int>(child));
    std::fflush(stdout);
    for (;;) pause();
  }
  runs.clear();
  ending = true;
  if (reaper.joinable()) reaper.join();
  return 0;
}
