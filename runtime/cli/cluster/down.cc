// patchbay down: drains every node and stops the cluster.
#include <algorithm>
#include <cstdio>
#include <utility>

#include <unistd.h>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/client/up_lock.h"
#include "runtime/core/clock.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr TimeMs kStopLimitMs = 60'000;
constexpr long kDownLookMs = 50;
/// A trainer that lives is back sooner after its scheduler was started again.
constexpr std::uint64_t kUnattendedMs = 5'000;
constexpr TimeMs kUnattendedLimitMs = kUnattendedMs + 1'000;

std::vector<protocol::JobRow> OpenStreams(std::vector<protocol::JobRow> jobs) {
  std::erase_if(jobs, [](const protocol::JobRow& job) {
    return job.kind != "stream" || client::HasEnded(job.state);
  });
  return jobs;
}

/// Open streams, once each has a trainer, is planned for one, or has had none for so long that its
/// trainer is dead.
StatusOr<std::vector<protocol::JobRow>> KnownStreams(client::Client& client) {
  const TimeMs deadline = SteadyClock().NowMs() + kUnattendedLimitMs;
  while (true) {
    PB_ASSIGN_OR_RETURN(std::vector<protocol::JobRow> jobs, client.DescribeAllJobs());
    jobs = OpenStreams(std::move(jobs));
    const bool unknown = std::any_of(jobs.begin(), jobs.end(), [](const auto& job) {
      return job.unattended_ms > 0 && job.unattended_ms < kUnattendedMs;
    });
    if (!unknown || SteadyClock().NowMs() > deadline) return jobs;
    if (Interrupted()) return Cancelled("down: interrupted");
    PauseMs(kDownLookMs);
  }
}

/// Whether the user at the terminal confirms; false without a terminal.
bool Confirmed(const std::string& question) {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) return false;
  std::fprintf(stderr, "%s [y/N] ", Printable(question).c_str());
  const int answer = std::getchar();
  return answer == 'y' || answer == 'Y';
}

class DownCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"--force", "", "end running streams without asking", &force_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const bool here = session.cluster_file.empty();
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_RETURN_IF_ERROR(AskAboutStreams(cluster.client(), session.terminal));
    PB_RETURN_IF_ERROR(cluster.client().ShutDown());
    const TimeMs deadline = SteadyClock().NowMs() + kStopLimitMs;
    while (here && client::ClusterHere(session.environment) != client::ClusterState::kNone &&
           !Interrupted()) {
      if (SteadyClock().NowMs() > deadline) {
        return DeadlineExceeded("down: still running after ", kStopLimitMs / 1000, " s");
      }
      PauseMs(kDownLookMs);
    }
    session.terminal.Say(here ? "stopped" : "stopping");
    session.terminal.Result({{"stopped", here}});
    return ExitCode::kDone;
  }

 private:
  Status AskAboutStreams(client::Client& client, Terminal& terminal) const {
    if (force_) return absl::OkStatus();
    PB_ASSIGN_OR_RETURN(const std::vector<protocol::JobRow> open, KnownStreams(client));
    std::vector<std::string> streams;
    for (const protocol::JobRow& job : open) {
      const std::string name = StrCat(job.job, " of ", job.submitter);  // "3 of ann"
      if (job.unattended_ms < kUnattendedMs) {
        streams.push_back(name);
      } else {
        terminal.Note(StrCat("job ", name, " ends: it has had no trainer for ",
                             job.unattended_ms / 1000, " s"));
      }
    }
    if (streams.empty()) return absl::OkStatus();
    const bool is_one = streams.size() == 1;
    const std::string running =
        StrCat(is_one ? "a stream is running (job " : "streams are running (jobs ",
               StrJoin(streams, ", "), ")");
    if (Confirmed(StrCat(running, ": stop?"))) return absl::OkStatus();
    const char* which = is_one ? "it" : "them";
    return FailedPrecondition("down: ", running, ": end or `patchbay cancel` ", which,
                              " first, or stop ", which, " with --force");
  }

  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDown() { return std::make_unique<DownCommand>(); }

}  // namespace patchbay::cli
