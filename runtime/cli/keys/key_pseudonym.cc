// patchbay key pseudonym export|import FILE: a team that gives the same slides the same names
// shares one key.
#include "runtime/cli/commands.h"
#include "runtime/cli/keys/pseudonym_key.h"
#include "runtime/client/paths.h"

namespace patchbay::cli {
namespace {

class KeyPseudonymCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument action{"ACTION", "", "write this home's key to a new file, or take the one in a file",
                    &action_, true};
    action.choices = {"export", "import"};
    return {action,
            {"FILE", "", "the key: owner-only when it is written", &file_, true},
            {"--force", "", "import: replace another key that this home has", &force_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    PB_ASSIGN_OR_RETURN(const std::string path, client::AbsolutePath(file_));
    const bool is_export = action_ == "export";
    if (is_export && force_) return UsageError("key pseudonym: --force goes with import only");
    PB_RETURN_IF_ERROR(is_export ? ExportPseudonymKey(session.environment, path)
                                 : ImportPseudonymKey(session.environment, path, force_));
    session.terminal.Say(is_export ? path : "stores are named with this key from now on");
    session.terminal.Result({{"action", action_}, {"path", path}});
    return ExitCode::kDone;
  }

 private:
  std::string action_, file_;
  bool force_ = false;
};

}  // namespace

const char kKeyPseudonymNote[] =
    "Stores are named by a hash of the slide's content with this key, so homes that share it give "
    "a\n"
    "slide one name. Who has the key and a slide can tell which store is its: guard it as you "
    "would\n"
    "a list of patients.\n";

std::unique_ptr<Command> MakeKeyPseudonym() { return std::make_unique<KeyPseudonymCommand>(); }

}  // namespace patchbay::cli
