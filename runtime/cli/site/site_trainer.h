// The user's own program on a node of a site.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "runtime/core/status.h"

namespace patchbay::cli {

/// A running trainer. It dies with this process.
class SiteTrainer {
 public:
  /// Starts `words`, found in PATH, with RANK, WORLD_SIZE and PATCHBAY_CLUSTER set. One that cannot
  /// be executed says so on stderr, and ends with 127. Needs a single-threaded caller.
  static StatusOr<SiteTrainer> Start(const std::vector<std::string>& words, std::int64_t rank,
                                     std::int64_t world_size, const std::string& key_file);
  SiteTrainer(SiteTrainer&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), status_(other.status_) {}
  SiteTrainer& operator=(SiteTrainer&&) = delete;
  /// Kills it.
  ~SiteTrainer();

  /// Its exit status once it has ended, as a shell has it: 128 + N after signal N.
  std::optional<int> PollExit();
  void Signal(int number) const;
  /// Waits for its end, after `kill_after_ms` by SIGKILL; its exit status.
  int Await(long kill_after_ms);

 private:
  explicit SiteTrainer(pid_t pid) : pid_(pid) {}

  pid_t pid_;
  std::optional<int> status_;
};

}  // namespace patchbay::cli
