// patchbay labels tissue STORE...: where slides hold tissue, as a label set of their stores.
#include <algorithm>

#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/labels/label_rows.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/core/strings.h"
#include "runtime/model/jobs/label_options.h"
#include "runtime/model/plan/cohort_table.h"

namespace patchbay::cli {
namespace {

void SayTissue(Terminal& terminal, const LabelledRow& row) {
  std::uint64_t all = 0, tissue = 0;
  for (const Json& one : row.report.value("classes", Json::array())) {
    const auto pixels = one.value("pixels", std::uint64_t{0});
    all += pixels;
    if (one.value("name", "") == "tissue") tissue = pixels;
  }
  SayRevision(terminal, row);
  const double share = all == 0 ? 0 : static_cast<double>(tissue) / static_cast<double>(all);
  const Json found = row.report.value("tissue", Json::object());
  std::string line =
      StrCat("  tissue ", Fixed(100 * share, 1), " %, profile ", found.value("profile", ""));
  if (found.value("no_tissue", false)) line += "; no tissue was found: sampling passes it over";
  if (!found.value("areas", true)) line += "; no mpp: areas and closing were left out";
  terminal.Say(line);
}

class LabelsTissueCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments = WithOptions(
        {{"STORE|COHORT", "", "stores, folders of them, or a table of slides", &paths_, true},
         {"--stores", "DIR", "of a table: the folder with the rows' stores", &stores_}},
        options_);
    own_.AddTo(arguments);
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    const bool has_table = std::any_of(paths_.begin(), paths_.end(), plan::NamesTable);
    if (!has_table && !stores_.empty()) return UsageError("--stores goes with a table of slides");
    PB_ASSIGN_OR_RETURN(const LabelRows rows, StoreRowsOf(paths_, stores_));
    PB_ASSIGN_OR_RETURN(const LabelledRows results,
                        RunLabelsJob(session, own_, rows, {PayloadOf(options_)}, "labels tissue"));
    return EndLabelsJob(session, results, &SayTissue);
  }

 private:
  std::vector<std::string> paths_;
  std::string stores_;
  LabelsTissueOptions options_;
  OwnClusterArguments own_;
};

}  // namespace

const char kLabelsTissueNote[] =
    "The set has the classes background and tissue, and is what `sampling.tissue` of a run config\n"
    "goes by. A slide without tissue gets a set without it, and says so. Exit code 1: no set was\n"
    "made; 3: some were not.\n";

std::unique_ptr<Command> MakeLabelsTissue() { return std::make_unique<LabelsTissueCommand>(); }

}  // namespace patchbay::cli
