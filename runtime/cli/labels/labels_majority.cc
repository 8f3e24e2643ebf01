// patchbay labels majority SET... --in STORE: a label set of the class that most of several sets
// give each pixel.
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/labels/labels_job.h"
#include "runtime/model/jobs/label_options.h"

namespace patchbay::cli {
namespace {

class LabelsMajorityCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    std::vector<Argument> arguments =
        WithOptions({{"SET", "", "the label sets that vote, each a reader's", &sets_, true},
                     {"--in", "STORE|COHORT",
                      "stores, folders of them, or a table of slides; repeatable", &paths_, true},
                     {"--stores", "DIR", "folder of the stores of a table's rows", &stores_}},
                    options_);
    own_.AddTo(arguments);
    return arguments;
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_RETURN_IF_ERROR(CheckCompared(sets_, paths_, stores_));
    PB_ASSIGN_OR_RETURN(const LabelRows rows, StoreRowsOf(paths_, stores_));
    Json payload = PayloadOf(options_);
    payload.update(JsonOf(LabelsPayload{.sets = sets_}));
    return RunStagedJob(session, {LabelsJobOf(rows, std::move(payload)), &own_});
  }

 private:
  std::vector<std::string> sets_, paths_;
  std::string stores_;
  LabelsMajorityOptions options_;
  OwnClusterArguments own_;
};

}  // namespace

const char kLabelsMajorityNote[] =
    "A set that leaves a pixel without a class has no vote there. The sets need the same classes\n"
    "and values. Exit code 1: no set was made; 3: some were not.\n";

std::unique_ptr<Command> MakeLabelsMajority() { return std::make_unique<LabelsMajorityCommand>(); }

}  // namespace patchbay::cli
