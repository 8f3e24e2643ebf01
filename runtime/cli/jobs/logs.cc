// patchbay logs ID [-f]: the events of a job.
#include <ctime>
#include <optional>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/jobs/recorded_request.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr long kFollowPauseMs = 500;
constexpr std::int64_t kStreamEveryNs = 10'000'000'000;  ///< lines on a stream that goes on

using LogLine = protocol::LogsFetched::Line;

class LogsCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {JobArgument(job_), {"-f", "", "follow the log until the job ends", &follow_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    const auto job = static_cast<JobId>(job_);
    Json list = Json::array();
    while (true) {
      PB_ASSIGN_OR_RETURN(const protocol::JobRow row, cluster.client().DescribeJob(job));
      if (seen_ == 0) order_ = RecordedRequest(session.environment, row);
      if (order_.has_value() && order_->work.empty()) LearnPlan(cluster.client(), job, *order_);
      PB_ASSIGN_OR_RETURN(const std::vector<LogLine> lines, cluster.client().FetchLogs(job, seen_));
      for (const LogLine& line : lines) Show(session.terminal, line, list);
      if (!lines.empty()) continue;
      PB_RETURN_IF_ERROR(ShowStream(session.terminal, cluster.client(), row));
      if (!follow_ || client::HasEnded(row.state) || Interrupted()) break;
      PauseMs(kFollowPauseMs);
    }
    session.terminal.Result({{"job", job_}, {"lines", list}});
    return ExitCode::kDone;
  }

 private:
  /// The present state of a stream, where its log has nothing more to say.
  Status ShowStream(Terminal& terminal, client::Client& client, const protocol::JobRow& row) {
    const bool runs = row.kind == "stream" && row.state == protocol::JobState::kRunning;
    if (!runs || terminal.json() || !due_.Due(0, SteadyNowNs())) return absl::OkStatus();
    double rate = -1;
    if (row.patches_total != 0) {
      PB_ASSIGN_OR_RETURN(rate, PatchesPerSecond(client, row));
    }
    terminal.Say(StrCat("now ", StreamText(row, rate)));
    return absl::OkStatus();
  }

  void Show(Terminal& terminal, const LogLine& line, Json& list) {
    seen_ = line.sequence;
    const auto at = static_cast<std::time_t>(line.at);
    std::tm parts{};
    char clock[16] = "";
    if (localtime_r(&at, &parts) != nullptr) std::strftime(clock, sizeof(clock), "%T", &parts);
    const SubjectNames names = order_.has_value() ? order_->Names() : SubjectNames();
    const std::string text = client::TextOf(line, names);
    terminal.Say(StrCat(static_cast<const char*>(clock), " ", text));
    if (terminal.json()) {
      list.push_back({{"sequence", line.sequence}, {"at", line.at}, {"text", text}});
    }
  }

  std::int64_t job_ = 0;
  bool follow_ = false;
  std::uint64_t seen_ = 0;
  ProgressLines due_{false, kStreamEveryNs};
  std::optional<SlideJobRequest> order_;  ///< names behind the numbers, where this user has them
};

}  // namespace

std::unique_ptr<Command> MakeLogs() { return std::make_unique<LogsCommand>(); }

}  // namespace patchbay::cli
