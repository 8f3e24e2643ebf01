// patchbay labels tissue STORE...: where slides hold tissue, as a label set of their stores.
#include <algorithm>
#include <utility>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/jobs/tissue_options.h"
#include "runtime/model/plan/cohort_table.h"

namespace patchbay::cli {
namespace {

class LabelsTissueCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = WithOptions(
        {{"STORE|COHORT", "", "stores, folders of them, or a table of slides", &paths_, true},
         {"--stores", "DIR", "folder of the stores of a table's rows", &stores_}},
        options_);
    own_.AddTo(arguments);
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    if (const Status wrong = options_.Check(); !wrong.ok()) {
      return UsageError(StrCat("--option: ", MessageOf(wrong)));
    }
    const bool has_table = std::any_of(paths_.begin(), paths_.end(), plan::NamesTable);
    if (!has_table && !stores_.empty()) return UsageError("--stores goes with a table of slides");
    PB_ASSIGN_OR_RETURN(const LabelRows rows, StoreRowsOf(paths_, stores_));
    Json payload = PayloadOf(options_);
    if (!rows.tissue_options.empty()) payload[kTissueOptionsOfRows] = rows.tissue_options;
    return RunStagedJob(session, {LabelsJobOf(rows, std::move(payload)), &own_});
  }

 private:
  std::vector<std::string> paths_;
  std::string stores_;
  LabelsTissueOptions options_;
  OwnClusterArguments own_;
};

}  // namespace

const char kLabelsTissueNote[] =
    "The set has the classes background and tissue, for `sampling.tissue` of a run config. A "
    "slide\n"
    "without tissue gets a set without the class, and is reported. Exit code 1: no set was\n"
    "made; 3: some were not.\n";

std::unique_ptr<Command> MakeLabelsTissue() { return std::make_unique<LabelsTissueCommand>(); }

}  // namespace patchbay::cli
