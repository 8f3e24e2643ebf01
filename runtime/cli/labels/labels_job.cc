#include "runtime/cli/labels/labels_job.h"

#include <utility>
#include <vector>

#include "runtime/cli/labels/labels_report.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

std::vector<LabelledRow> ResultsOf(client::Client& client, const protocol::JobRow& job,
                                   const SlideJobRequest& request) {
  std::vector<LabelledRow> results;
  for (std::size_t i = 0; i < request.stores.size(); ++i) {
    LabelledRow row{request.stores[i], request.sources.empty() ? "" : request.sources[i], nullptr,
                    OutcomeOf(absl::UnknownError("nothing was made of it"))};
    const TaskId task{job.job, static_cast<std::uint32_t>(i) + 1};
    for (const protocol::FailedTask& failed : job.failed) {
      const bool is_its = failed.task == task || failed.task.index == 0;
      if (is_its) row.outcome = Named(failed.outcome, request.Names());
    }
    const auto result = client.FetchResult(task);
    if (result.ok() && result->state == protocol::TaskState::kDone) {
      row.report = ParseJson(result->result, "result of a label set").value_or(Json());
    }
    results.push_back(std::move(row));
  }
  return results;
}

/// Why there is no set, with the file or store that it is about.
std::string Located(const LabelledRow& row) {
  const std::string& subject = row.file.empty() ? row.store : row.file;
  const bool names_it = row.outcome.subject.part.starts_with(subject);
  return names_it ? TextOf(row.outcome) : StrCat(subject, ": ", TextOf(row.outcome));
}

StatusOr<ExitCode> EndLabelsJob(Session& session, client::Cluster& cluster,
                                const SlideJobRequest& request, const protocol::JobRow& job,
                                const Json* around) {
  Json made = Json::array(), failed = Json::array();
  PrintSkipped(session.terminal, request.skipped_files);
  for (const LabelledRow& row : ResultsOf(cluster.client(), job, request)) {
    Json named = {{"store", row.store}};
    if (!row.file.empty()) named["file"] = row.file;
    if (row.report.is_null()) {
      session.terminal.Error(Located(row));
      named.update(ReasonToJson(row.outcome));
      failed.push_back(std::move(named));
      continue;
    }
    SayLabels(session.terminal, row);
    Json report = row.report;
    report.update(named);
    made.push_back(std::move(report));
  }
  const bool is_whole = failed.empty();
  const ExitCode code = is_whole       ? ExitCode::kDone
                        : made.empty() ? ExitCode::kFailed
                                       : ExitCode::kSomeFailed;
  const Json report = {{"job", job.job},
                       {"imported", std::move(made)},
                       {"failed", std::move(failed)},
                       {"skipped_files", request.skipped_files}};
  Json result = around == nullptr ? report : *around;
  if (around != nullptr) result["result"] = report;
  session.terminal.Result(result);
  return code;
}

}  // namespace

const StagedJobKind kLabelsKind = {.kind = "labels", .end = EndLabelsJob};

SlideJobRequest LabelsJobOf(const LabelRows& rows, Json payload, const std::string& pseudonym_key) {
  SlideJobRequest request;
  request.kind = "labels";
  request.stores = rows.Stores();
  for (const LabelRow& row : rows.rows) {
    if (!row.file.empty()) request.sources.push_back(row.file);
  }
  request.started_ns = SteadyNowNs();
  request.payload = std::move(payload);
  request.manifest = {{"images", request.stores}};
  if (!request.sources.empty()) request.manifest["sources"] = request.sources;
  if (!pseudonym_key.empty()) request.manifest["pseudonym_key"] = pseudonym_key;
  request.skipped_files = rows.skipped_files;
  return request;
}

}  // namespace patchbay::cli
