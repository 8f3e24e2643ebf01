// patchbay labels import STORE FILE: a pathologist's annotations to a label image of the store; of
// results of `map` their class maps to label images of all stores that they were made from.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/format/json/described.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/plan/class_table.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/os/file.h"

namespace patchbay::cli {
namespace {

constexpr std::size_t kMaxClassTableBytes = 1u << 20;

class LabelsImportCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = WithOptions(
        {{"STORE|COHORT|RESULTS", "",
          "a store, a table with a column `annotation`, or results of `map`", &store_, true},
         {"FILE", "", "GeoJSON, ASAP or ImageScope XML, TIFF; NIfTI, NRRD, MHA, SEG, RTSTRUCT",
          &file_},
         {"--stores", "DIR", "folder of the stores of a table's rows, or of results", &stores_},
         {"--classes", "CLASSES.yaml", "the class table; results have their own", &classes_},
         {"--output", "NAME", "the output of results, where several have a class map", &output_},
         {"--site", "NAME", "site whose mask values apply (the table's `from`)", &site_}},
        options_);
    own_.AddTo(arguments);
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override;

 private:
  StatusOr<LabelRows> Rows() const;
  StatusOr<Json> Classes() const;
  StatusOr<ExitCode> Import(Session& session, const LabelRows& rows, Json classes,
                            std::vector<FailedSource> failed = {});

  std::string store_, file_, stores_, classes_, output_, site_;
  LabelsImportOptions options_;
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

StatusOr<Json> LabelsImportCommand::Classes() const {
  const StatusOr<std::string> text = ReadFile(Folders::OfThisUser(), classes_, kMaxClassTableBytes);
  if (!text.ok()) return text.status();
  const StatusOr<plan::ClassTable> table = plan::ParseClassTable(*text, classes_);
  if (!table.ok()) return AsUsageError(table.status());
  return JsonOf(*table);
}

StatusOr<ExitCode> LabelsImportCommand::Import(Session& session, const LabelRows& rows,
                                               Json classes, std::vector<FailedSource> failed) {
  Json payload = PayloadOf(options_);
  payload.update(JsonOf(LabelsPayload{.classes = std::move(classes)}));
  // A store has frames of reference under this key.
  PB_ASSIGN_OR_RETURN(const std::string key, PseudonymKey(session.environment));
  SlideJobRequest request = LabelsJobOf(rows, std::move(payload), key);
  request.failed = std::move(failed);
  return RunStagedJob(session, {std::move(request), &own_});
}

StatusOr<ExitCode> LabelsImportCommand::Run(Session& session) {
  const InterruptScope interrupts;
  if (file_.empty() && NamesResults(store_)) {
    if (!classes_.empty() || !site_.empty()) {
      return UsageError("results have the classes of their output: no --classes, no --site");
    }
    PB_ASSIGN_OR_RETURN(ResultRows found, LabelRowsOfResults(store_, output_, stores_));
    return Import(session, {std::move(found.rows)}, std::move(found.classes),
                  std::move(found.failed));
  }
  if (!output_.empty()) return UsageError("--output goes with a folder of results");
  if (classes_.empty()) return UsageError("--classes: name the class table of the annotations");
  PB_ASSIGN_OR_RETURN(const LabelRows rows, Rows());
  PB_ASSIGN_OR_RETURN(Json classes, Classes());
  return Import(session, rows, std::move(classes));
}

}  // namespace

const char kLabelsImportNote[] =
    "The set becomes a label image below STORE/labels, with as many levels as the image. A new\n"
    "revision takes the place of an old one once it is complete and durable; old ones stay for\n"
    "the runs that name them. Where outlines overlap, the class further down the table wins.\n"
    "RESULTS, or the folder of an image in them, become sets of the stores that they were made\n"
    "from.\n"
    "On slides of which a part was scanned (MIRAX, Leica), GeoJSON counts from the scanned area,\n"
    "as QuPath does, and other formats from the slide's corner; --origin says otherwise.\n"
    "Exit code 1: nothing was imported, and the store is as it was.\n";

std::unique_ptr<Command> MakeLabelsImport() { return std::make_unique<LabelsImportCommand>(); }

}  // namespace patchbay::cli
