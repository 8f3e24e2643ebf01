// patchbay labels import STORE FILE: a pathologist's annotations to a label image of the store.
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/job_view.h"
#include "runtime/cli/label_rows.h"
#include "runtime/client/paths.h"
#include "runtime/plan/class_table.h"
#include "runtime/plan/cohort_table.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxClassTableBytes = 1u << 20;

struct ImportedRow {
  std::string store, file;
  Json report;         ///< null where it failed
  std::string reason;  ///< where it failed
};

std::string Count(const Json& report, const char* key, const char* text) {
  const auto count = report.value(key, std::int64_t{0});
  return count == 0 ? std::string() : StrCat(", ", count, " ", text);
}

std::string AreaText(const Json& area) {
  return area.is_number() ? Fixed(area.get<double>(), 4) : std::string("unknown");
}

void SayRow(Terminal& terminal, const ImportedRow& row) {
  const Json& report = row.report;
  std::vector<std::vector<std::string>> table = {
      {"class", "value", "outlines", "pixels", "area mm2"}};
  std::int64_t outlines = 0;
  for (const Json& one : report.value("classes", Json::array())) {
    outlines += one.value("outlines", std::int64_t{0});
    table.push_back({one.value("name", ""), StrCat(one.value("value", 0)),
                     StrCat(one.value("outlines", std::int64_t{0})),
                     StrCat(one.value("pixels", std::uint64_t{0})),
                     AreaText(one.value("area_mm2", Json()))});
  }
  table.push_back(
      {"ignored", "255", "", StrCat(report.value("ignored_pixels", std::uint64_t{0})), ""});
  terminal.Say(StrCat(row.store, ": set ", report.value("set", ""), ", ",
                      report.contains("revision") ? report.value("revision", "")
                                                  : std::string("dry run: nothing was written"),
                      report.value("already_there", false) ? " (was there already)" : ""));
  terminal.Say(StrCat(outlines, " outlines",
                      Count(report, "clipped", "clipped at the slide's edge"),
                      Count(report, "outside", "outside the slide, left out"),
                      Count(report, "skipped", "skipped by the class table"),
                      Count(report, "without_area", "without area, left out"),
                      Count(report, "self_crossing", "cross themselves (filled even-odd)")));
  for (const std::string& line : FormatTable(table, {false, true, true, true, true})) {
    terminal.Say(line);
  }
}

class LabelsImportCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = {
        {"STORE|COHORT", "", "a slide's store, or a table with a column `annotation`", &store_,
         true},
        {"FILE", "", "of a store: GeoJSON, XML of ASAP or ImageScope, or a TIFF mask", &file_},
        {"--stores", "DIR", "of a table: the folder with the rows' stores", &stores_},
        {"--set", "NAME", "the label set: one for each reader and purpose", &set_, true},
        {"--classes", "CLASSES.yaml", "the class table", &classes_, true},
        {"--site", "NAME", "whose mask values the file has (the table's `from`)", &site_},
        {"--dry-run", "", "write nothing; show the area of each class", &dry_run_}};
    own_.AddTo(arguments);
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<LabelRows> Rows() const;
  StatusOr<protocol::SubmitJob> Submission(const LabelRows& rows) const;

  std::string store_, file_, stores_, set_, classes_, site_;
  bool dry_run_ = false;
  OwnClusterArguments own_;
};

StatusOr<LabelRows> LabelsImportCommand::Rows() const {
  const bool is_table = plan::NamesTable(store_);
  if (!is_table && !stores_.empty()) return UsageError("--stores goes with a table of slides");
  if (is_table && (!file_.empty() || !site_.empty())) {
    return UsageError("a table names each row's file and site itself");
  }
  if (is_table) return LabelRowsOfTable(store_, stores_);
  if (file_.empty()) return UsageError("FILE: name the annotation file of the store");
  return LabelRowOf(store_, file_, site_);
}

StatusOr<protocol::SubmitJob> LabelsImportCommand::Submission(const LabelRows& rows) const {
  const StatusOr<std::string> text = ReadFile(classes_, kMaxClassTableBytes);
  if (!text.ok()) return text.status();
  const StatusOr<plan::ClassTable> table = plan::ParseClassTable(*text, classes_);
  if (!table.ok()) return AsUsageError(table.status());
  protocol::SubmitJob submission;
  submission.kind = "labels";
  submission.name = StrCat("labels of ", rows.stores.size(), " stores");
  submission.root.op = "labels.plan";
  submission.root.label = "plan";
  submission.root.payload = DumpJson({{"set", set_},
                                      {"classes", plan::ToJson(*table)},
                                      {"sites", rows.sites},
                                      {"dry_run", dry_run_}});
  submission.manifest = DumpJson({{"images", rows.stores}, {"sources", rows.files}});
  return submission;
}

/// What each row came to, in the rows' order.
std::vector<ImportedRow> ResultsOf(client::Client& client, const protocol::JobRow& job,
                                   const LabelRows& rows) {
  std::vector<ImportedRow> results;
  for (std::size_t i = 0; i < rows.stores.size(); ++i) {
    ImportedRow row{rows.stores[i], rows.files[i], nullptr, "not imported"};
    const TaskId task{job.job, static_cast<std::uint32_t>(i) + 1};
    for (const protocol::FailedTask& failed : job.failed) {
      const bool is_its = failed.task == task || failed.task.index == 0;
      if (is_its) row.reason = failed.outcome.message;
    }
    (void)client::NameNumbered(row.reason, "dataset", rows.stores);
    (void)client::NameNumbered(row.reason, "source", rows.files);
    const auto result = client.FetchResult(task);
    const bool is_done = result.ok() && result->state == protocol::TaskState::kDone;
    if (is_done) {
      const auto report = ParseJson(result->result, "result of labels import");
      if (report.ok()) row.report = *report;
    }
    results.push_back(std::move(row));
  }
  return results;
}

ExitCode Report(Session& session, const protocol::JobRow& job,
                const std::vector<ImportedRow>& results) {
  Json imported = Json::array(), failed = Json::array();
  for (const ImportedRow& row : results) {
    if (row.report.is_null()) {
      session.terminal.Error(row.reason);
      failed.push_back({{"store", row.store}, {"file", row.file}, {"reason", row.reason}});
      continue;
    }
    SayRow(session.terminal, row);
    Json report = row.report;
    report["store"] = row.store;
    report["file"] = row.file;
    imported.push_back(std::move(report));
  }
  session.terminal.Result({{"job", job.job}, {"imported", imported}, {"failed", failed}});
  if (failed.empty()) return ExitCode::kDone;
  return imported.empty() ? ExitCode::kFailed : ExitCode::kSomeFailed;
}

StatusOr<ExitCode> LabelsImportCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(const LabelRows rows, Rows());
  PB_ASSIGN_OR_RETURN(protocol::SubmitJob submission, Submission(rows));
  PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, &own_));
  const StatusOr<JobId> job = cluster.client().SubmitJob(std::move(submission));
  if (!job.ok()) return cluster.Explain(job.status());
  JobProgress progress(session.terminal);
  const StatusOr<protocol::JobRow> row = cluster.client().Wait(
      *job, [&](const protocol::JobRow& seen) { progress.Show(seen); },
      [] { return !Interrupted(); });
  session.terminal.EndProgress();
  if (!row.ok() && Interrupted()) {
    if (cluster.embedded()) (void)cluster.client().CancelJob(*job);
    return absl::CancelledError(StrCat("labels import: interrupted: ",
                                       cluster.embedded()
                                           ? std::string("the sets are as they were")
                                           : StrCat("job ", *job, " continues on the cluster")));
  }
  if (!row.ok()) return cluster.Explain(row.status());
  return Report(session, *row, ResultsOf(cluster.client(), *row, rows));
}

}  // namespace

const char kLabelsImportNote[] =
    "The set becomes a label image below STORE/labels, with as many levels as the image. A new\n"
    "revision takes the place of an old one once it is complete and durable; old ones stay for\n"
    "the runs that name them. Where outlines overlap, the class further down the table wins.\n"
    "Exit code 1: nothing was imported, and the store is as it was.\n";

std::unique_ptr<Command> MakeLabelsImport() { return std::make_unique<LabelsImportCommand>(); }

}  // namespace patchbay::cli
