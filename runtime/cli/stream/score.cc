// patchbay score RESULTS: results of map against the truth, in the user's own Python
// (runtime/python/patchbay/score).
#include "runtime/cli/commands.h"
#include "runtime/cli/python_module.h"

namespace patchbay::cli {
namespace {

/// Replaces this process.
class ScoreCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {
        {"RESULTS", "", "a folder that map wrote", &results_, true},
        {"--truth", "NAME", "a label set; for kinds image and score also a column of the table",
         &truth_, true},
        {"--by", "COLUMN", "also a score for each value of this column; repeatable", &by_},
        {"--stores", "DIR", "folder of stores that have moved, found by their pixels", &stores_},
        {"--out", "DIR", "the folder that is written (default: RESULTS/score-NAME)", &out_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    std::vector<std::string> words = {results_, "--truth", truth_};
    for (const std::string& column : by_) AddFlag(words, "--by", column);
    AddFlag(words, "--stores", stores_);
    AddFlag(words, "--out", out_);
    return BecomePython(session, "score", std::move(words));
  }

 private:
  std::string results_, truth_, stores_, out_;
  std::vector<std::string> by_;
};

}  // namespace

std::unique_ptr<Command> MakeScore() { return std::make_unique<ScoreCommand>(); }

}  // namespace patchbay::cli
