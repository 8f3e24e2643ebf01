// Jobs as people and programs see them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/cli/command.h"
#include "runtime/cli/terminal.h"
#include "runtime/protocol/messages.h"

namespace patchbay::cli {

const char* JobStateName(protocol::JobState state);
Json JobToJson(const protocol::JobRow& job);
/// Heading and one line a job.
std::vector<std::string> JobTable(const std::vector<protocol::JobRow>& jobs);
/// The positional ID of commands about one job; defined in job.cc.
Argument JobArgument(std::int64_t& job);
/// What ended how: 0, 1, or 3 when only some of it failed.
ExitCode ExitOf(const protocol::JobRow& job);

/// Shows a job's progress, rate and time left: redrawn on a terminal, elsewhere a line when a tenth
/// of the work is done, and at least every ten seconds. The share that is done never falls: it
/// stands while a job finds more to do.
class JobProgress {
 public:
  explicit JobProgress(Terminal& terminal) : terminal_(terminal) {}
  /// `done` says what is done of how much ("slides 3/12"); "" or silent: tasks.
  void Show(const protocol::JobRow& job, const std::function<std::string()>& done = {});

 private:
  std::string Text(const protocol::JobRow& job, std::string done, double elapsed_s) const;

  Terminal& terminal_;
  std::int64_t started_ns_ = 0, shown_ns_ = 0;
  std::uint64_t first_weight_ = 0, first_bytes_ = 0;
  double most_share_ = 0;  ///< of the work that was done
  int shown_tenth_ = -1;
};

}  // namespace patchbay::cli
