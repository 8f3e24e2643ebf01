// A cluster for the lifetime of one command, which leaves nothing behind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/cli/environment.h"
#include "runtime/cli/node_processes.h"
#include "runtime/cli/temporary_folder.h"

namespace patchbay::cli {

inline constexpr std::int64_t kMaxCpuWorkers = 4096;

/// Keys made for the occasion, an abstract socket, a folder that vanishes. Ends with the object; if
/// this process is killed, every process of it is killed and the folder removed.
class EmbeddedCluster {
 public:
  /// Returns once workers can be had. Cancelled when interrupted (see InterruptScope). Call it
  /// before the process has a second thread.
  static StatusOr<std::unique_ptr<EmbeddedCluster>> Start(const Environment& environment,
                                                          std::int64_t cpus,
                                                          const std::string& gpus);
  ~EmbeddedCluster();

  /// OK while its processes run; why the command cannot go on once the supervisor, and with it all
  /// of them, has ended. For the thread that started it.
  Status Alive();

  /// Of an operator that may read and write everywhere this user may.
  std::string key_file() const { return folder_.path() + "/operator.key"; }

 private:
  explicit EmbeddedCluster(TemporaryFolder folder) : folder_(std::move(folder)) {}
  Status MakeKeys(const std::string& address) const;

  TemporaryFolder folder_;  ///< outlives node_
  std::optional<NodeProcesses> node_;
};

}  // namespace patchbay::cli
