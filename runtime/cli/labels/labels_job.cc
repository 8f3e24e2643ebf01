#include "runtime/cli/labels/labels_job.h"

#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/failed_sources.h"
#include "runtime/cli/jobs/job_view.h"
#include "runtime/cli/skipped_files.h"
#include "runtime/client/paths.h"
#include "runtime/core/counted.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

std::string AreaText(const Json& area) {
  return area.is_number() ? Fixed(area.get<double>(), 4) : std::string("unknown");
}

std::vector<LabelledRow> ResultsOf(client::Client& client, const protocol::JobRow& job,
                                   const LabelRows& rows) {
  client::JobNames names;
  names.stores = rows.stores;
  names.files = rows.files;
  std::vector<LabelledRow> results;
  for (std::size_t i = 0; i < rows.stores.size(); ++i) {
    LabelledRow row{rows.stores[i], rows.files.empty() ? "" : rows.files[i], nullptr,
                    OutcomeOf(absl::UnknownError("nothing was made of it"))};
    const TaskId task{job.job, static_cast<std::uint32_t>(i) + 1};
    for (const protocol::FailedTask& failed : job.failed) {
      const bool is_its = failed.task == task || failed.task.index == 0;
      if (is_its) row.outcome = Named(failed.outcome, names);
    }
    const auto result = client.FetchResult(task);
    const bool is_done = result.ok() && result->state == protocol::TaskState::kDone;
    if (is_done) {
      const auto report = ParseJson(result->result, "result of a label set");
      if (report.ok()) row.report = *report;
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

}  // namespace

StatusOr<LabelledRows> RunLabelsJob(Session& session, OwnClusterArguments& own,
                                    const LabelRows& rows, LabelsJobRequest order,
                                    const std::string& command) {
  protocol::SubmitJob submission;
  submission.kind = "labels";
  submission.name = StrCat("labels of ", Counted(rows.stores.size(), "store"));
  submission.root.op = "labels.plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson(order.payload);
  Json manifest = {{"images", rows.stores}};
  if (!rows.files.empty()) manifest["sources"] = rows.files;
  if (!order.pseudonym_key.empty()) manifest["pseudonym_key"] = std::move(order.pseudonym_key);
  submission.manifest = DumpJson(manifest);
  PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, &own));
  const StatusOr<JobId> job = cluster.client().SubmitJob(std::move(submission));
  if (!job.ok()) return cluster.Explain(job.status());
  JobProgress progress(session.terminal);
  const StatusOr<protocol::JobRow> row = cluster.client().Wait(
      *job, [&](const protocol::JobRow& seen) { progress.Show(seen); },
      [] { return !Interrupted(); });
  session.terminal.EndProgress();
  if (!row.ok() && Interrupted()) {
    if (cluster.embedded()) (void)cluster.client().CancelJob(*job);
    return absl::CancelledError(StrCat(command, ": interrupted: ",
                                       cluster.embedded()
                                           ? std::string("the sets are as they were")
                                           : StrCat("job ", *job, " continues on the cluster")));
  }
  if (!row.ok()) return cluster.Explain(row.status());
  return LabelledRows{row->job, ResultsOf(cluster.client(), *row, rows), rows.passed_over};
}

void SayRevision(Terminal& terminal, const LabelledRow& row) {
  terminal.Say(StrCat(row.store, ": set ", row.report.value("set", ""), ", ",
                      row.report.contains("revision") ? row.report.value("revision", "")
                                                      : std::string("dry run: nothing was written"),
                      row.report.value("already_there", false) ? " (was there already)" : ""));
}

void SayClasses(Terminal& terminal, const Json& report) {
  std::vector<std::vector<std::string>> table = {
      {"class", "value", "outlines", "pixels", "area mm2"}};
  for (const Json& one : report.value("classes", Json::array())) {
    table.push_back({one.value("name", ""), StrCat(one.value("value", 0)),
                     StrCat(one.value("outlines", std::int64_t{0})),
                     StrCat(one.value("pixels", std::uint64_t{0})),
                     AreaText(one.value("area_mm2", Json()))});
  }
  table.push_back(
      {"ignored", "255", "", StrCat(report.value("ignored_pixels", std::uint64_t{0})), ""});
  for (const std::string& line : FormatTable(table, {false, true, true, true, true})) {
    terminal.Say(line);
  }
}

ExitCode EndLabelsJob(Session& session, const LabelledRows& results,
                      const std::function<void(Terminal&, const LabelledRow&)>& say) {
  Json made = Json::array(), failed = Json::array();
  PrintSkipped(session.terminal, Json(results.passed_over));
  for (const LabelledRow& row : results.rows) {
    Json named = {{"store", row.store}};
    if (!row.file.empty()) named["file"] = row.file;
    if (row.report.is_null()) {
      session.terminal.Error(Located(row));
      named.update(ReasonToJson(row.outcome));
      failed.push_back(std::move(named));
      continue;
    }
    say(session.terminal, row);
    Json report = row.report;
    report.update(named);
    made.push_back(std::move(report));
  }
  session.terminal.Result({{"job", results.job},
                           {"imported", made},
                           {"failed", failed},
                           {"passed_over", Json(results.passed_over)}});
  if (failed.empty()) return ExitCode::kDone;
  return made.empty() ? ExitCode::kFailed : ExitCode::kSomeFailed;
}

}  // namespace patchbay::cli
