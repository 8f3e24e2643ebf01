// patchbay usage: what work cost, by team, user or job.
#include <charconv>
#include <ctime>
#include <map>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/usage_table.h"
#include "runtime/core/clock.h"
#include "runtime/format/csv/csv.h"
#include "runtime/model/jobs/team_policy.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kHour = 3'600, kDay = 24 * kHour;

double Hours(std::int64_t us) { return static_cast<double>(us) / 3.6e9; }
double Gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

/// Columns behind the names.
constexpr const char* kNumbers[] = {"core_hours",   "gpu_hours",         "gb_read",
                                    "gb_delivered", "wasted_core_hours", "wasted_gpu_hours"};

std::vector<double> NumbersOf(const UsageSum& sum) {
  return {Hours(sum.counted.cpu_us),
          Hours(sum.counted.gpu_us),
          Gigabytes(sum.counted.bytes_read + sum.wasted.bytes_read),
          Gigabytes(sum.counted.bytes_delivered),
          Hours(sum.wasted.cpu_us),
          Hours(sum.wasted.gpu_us)};
}

class UsageCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument by{"--by", "", "a row for each: team, user (default) or job", &by_};
    by.choices = {"team", "user", "job"};
    return {by,
            {"--since", "T", "first hour: 24h or 7d back, or a date, 2026-11-27 (default: all)",
             &since_},
            {"--csv", "", "write rows as CSV", &csv_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    std::int64_t since = 0;
    if (!since_.empty()) {
      PB_ASSIGN_OR_RETURN(since, TimeOf(since_, WallClockSeconds()));
    }
    if (csv_ && session.terminal.json()) return UsageError("--csv and --json exclude each other");
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(const std::vector<protocol::UsageRow> rows,
                        cluster.client().FetchUsage(since));
    const std::vector<UsageSum> sums = SumsBy(by_, rows);
    session.terminal.Result(JsonOf(sums));
    if (csv_) {
      session.terminal.SayText(CsvOf(sums));
    } else {
      for (const std::string& line : TableOf(sums)) session.terminal.Say(line);
    }
    return ExitCode::kDone;
  }

 private:
  std::vector<std::string> NamesOf(const UsageSum& sum) const {
    const std::string team = sum.team.empty() ? model::kDefaultTeam : sum.team;
    if (by_ == "team") return {team};
    if (by_ == "user") return {team, sum.user};
    return {team, sum.user, sum.job == 0 ? "older" : StrCat(sum.job)};
  }

  std::vector<std::string> Heading() const {
    if (by_ == "team") return {"team"};
    if (by_ == "user") return {"team", "user"};
    return {"team", "user", "job"};
  }

  Json JsonOf(const std::vector<UsageSum>& sums) const {
    Json rows = Json::array();
    for (const UsageSum& sum : sums) {
      Json row = {{"team", sum.team}};
      if (by_ != "team") row["user"] = sum.user;
      if (by_ == "job") row["job"] = sum.job;
      const std::vector<double> numbers = NumbersOf(sum);
      for (std::size_t i = 0; i < numbers.size(); ++i) row[kNumbers[i]] = numbers[i];
      rows.push_back(row);
    }
    return {{"by", by_}, {"rows", rows}};
  }

  std::string CsvOf(const std::vector<UsageSum>& sums) const {
    std::vector<std::string> heading = Heading();
    heading.insert(heading.end(), std::begin(kNumbers), std::end(kNumbers));
    std::string text = CsvRow(heading);
    for (const UsageSum& sum : sums) {
      std::vector<std::string> row;
      for (const std::string& name : NamesOf(sum)) row.push_back(CsvField(name));
      for (const double number : NumbersOf(sum)) row.push_back(Fixed(number, 6));
      text += CsvRow(row);
    }
    return text;
  }

  std::vector<std::string> TableOf(const std::vector<UsageSum>& sums) const {
    std::vector<std::vector<std::string>> rows = {Heading()};
    for (const char* name : {"core-hours", "GPU-hours", "GB read", "GB delivered", "wasted"}) {
      rows[0].push_back(name);
    }
    for (const UsageSum& sum : sums) {
      std::vector<std::string> row = NamesOf(sum);
      const std::vector<double> numbers = NumbersOf(sum);
      for (std::size_t i = 0; i < 5; ++i) row.push_back(Fixed(numbers[i], 3));
      rows.push_back(std::move(row));
    }
    std::vector<bool> right(Heading().size(), false);
    right.resize(rows[0].size(), true);
    return FormatTable(rows, right);
  }

  std::string by_ = "user", since_;
  bool csv_ = false;
};

}  // namespace

StatusOr<std::int64_t> TimeOf(const std::string& text, std::int64_t now) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, count);
  const bool is_span = error == std::errc() && unit + 1 == end && count >= 0 && count <= 36'500;
  if (is_span && *unit == 'h') return now - count * kHour;
  if (is_span && *unit == 'd') return now - count * kDay;
  std::tm parts{};
  const char* const rest = strptime(text.c_str(), "%Y-%m-%d", &parts);
  if (rest != nullptr && *rest == '\0') {
    parts.tm_isdst = -1;
    return static_cast<std::int64_t>(std::mktime(&parts));
  }
  return UsageError(
      StrCat("--since ", text, ": neither hours (24h), days (7d) nor a date ", "(2026-11-27)"));
}

std::vector<UsageSum> SumsBy(const std::string& by, const std::vector<protocol::UsageRow>& rows) {
  std::map<std::tuple<std::string, std::string, JobId>, UsageSum> sums;
  for (const protocol::UsageRow& row : rows) {
    const std::string user = by == "team" ? std::string() : row.user;
    const JobId job = by == "job" ? row.job : 0;
    UsageSum& sum = sums[{row.team, user, job}];
    sum.team = row.team;
    sum.user = user;
    sum.job = job;
    for (const auto& [to, cost] :
         {std::pair(&sum.counted, &row.counted), std::pair(&sum.wasted, &row.wasted)}) {
      to->cpu_us += cost->cpu_us;
      to->gpu_us += cost->gpu_us;
      to->bytes_read += cost->bytes_read;
      to->bytes_delivered += cost->bytes_delivered;
    }
  }
  std::vector<UsageSum> list;
  for (auto& [key, sum] : sums) list.push_back(std::move(sum));
  return list;
}

std::unique_ptr<Command> MakeUsage() { return std::make_unique<UsageCommand>(); }

}  // namespace patchbay::cli
