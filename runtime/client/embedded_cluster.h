// A cluster that lives as long as the processes that opened it: supervisor, scheduler, agent and
// workers, reached over an abstract Unix socket. See notes/0001-embedded-cluster.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "runtime/core/status.h"
#include "runtime/os/file.h"

namespace patchbay::client {

struct EmbeddedOptions {
  std::string temporary;  ///< its private folder lies here
  std::string programs;   ///< folder of the programs; "" = that of the running program
  std::int64_t cpus = 1;  ///< CPU workers
  std::string gpus = "auto";
  /// Processes of this user with the same value share one cluster, which ends with the last of
  /// them; the options of the first apply. "" = a separate cluster.
  std::string share;
  /// Start ends with Cancelled once it returns false; may be empty.
  std::function<bool()> keep_waiting;
  std::string python;  ///< Environment::python: it runs own functions of this user; "" = none
};

/// Belongs to the process, not to the thread, that started it. In a child made by fork() it is
/// inert. Installs no signal handler; a program that reaps every child (waitpid(-1)) does no harm.
class EmbeddedCluster {
 public:
  /// Returns once workers can be had. Any thread, any number of times.
  static StatusOr<std::unique_ptr<EmbeddedCluster>> Start(const EmbeddedOptions& options);
  /// Takes it down, unless other processes share it, and waits until nothing is left.
  ~EmbeddedCluster();
  EmbeddedCluster(const EmbeddedCluster&) = delete;
  EmbeddedCluster& operator=(const EmbeddedCluster&) = delete;

  /// OK while its processes run; Unavailable once its supervisor or launcher, and with it all of
  /// them, has ended. FailedPrecondition in a forked child. Thread-safe.
  Status Alive() const;

  /// Key of an operator that may read and write everywhere this user may.
  std::string key_file() const { return folder_ + "/operator.key"; }

 private:
  EmbeddedCluster(UniqueFd link, std::string folder);
  static StatusOr<std::unique_ptr<EmbeddedCluster>> Join(const EmbeddedOptions& options);
  static StatusOr<std::unique_ptr<EmbeddedCluster>> Launch(const EmbeddedOptions& options);
  Status AwaitReady(const EmbeddedOptions& options) const;

  const pid_t owner_;
  UniqueFd link_;  ///< to the launcher
  UniqueFd log_;   ///< log of its processes; invalid in processes that joined
  std::string folder_;
};

/// Output of the processes of a cluster that did not start, which stands below the first line of
/// the error's text; "" for other errors, whose text is one line.
std::string SaidBy(const Status& status);

}  // namespace patchbay::client
