// A command of `patchbay`: its arguments and its action. One file per command; command_table.cc
// lists all.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cli/arguments.h"
#include "runtime/cli/terminal.h"
#include "runtime/client/environment.h"
#include "runtime/core/status.h"

namespace patchbay::cli {

/// Exit codes that scripts may rely on.
enum class ExitCode : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,       ///< unknown command, flag or config key
  kSomeFailed = 3,  ///< the rest is done
  kStopped = 75     ///< a signal ended it with work left: the same command goes on
};

/// The surroundings of every command. Outlives the command.
struct Session {
  Terminal& terminal;
  const client::Environment& environment;
  std::string cluster_file;  ///< --cluster or PATCHBAY_CLUSTER; "" = an embedded cluster
};

class Command {
 public:
  virtual ~Command() = default;

  /// The arguments it takes; targets point into this object.
  virtual std::vector<Argument> Arguments() = 0;

  /// Runs after the arguments are filled. An error is shown to the user; its exit code is kFailed,
  /// kUsage when made by UsageError, or kStopped after a signal (see InterruptScope).
  virtual StatusOr<ExitCode> Run(Session& session) = 0;
};

/// An error whose cure is another command line or config: exit code 2.
Status UsageError(std::string_view text);
Status AsUsageError(const Status& status);
bool IsUsageError(const Status& status);

}  // namespace patchbay::cli
