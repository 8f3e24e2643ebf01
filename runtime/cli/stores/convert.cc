// patchbay convert STORE... --to FORMAT --out DIR: stores of another codec, or slides of kept
// tiles.
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/jobs/slide_job.h"
#include "runtime/model/jobs/convert_options.h"

namespace patchbay::cli {
namespace {

class ConvertCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override;
  StatusOr<ExitCode> Run(Session& session) override;

 private:
  std::vector<std::string> sources_;
  std::string out_;
  ConvertOptions options_;
  bool detach_ = false;
  OwnClusterArguments own_;
};

std::vector<Argument> ConvertCommand::Arguments() {
  std::vector<Argument> arguments =
      WithOptions({{"STORE", "", "stores, or folders of them", &sources_, true},
                   {"--out", "DIR", "the folder for what is made", &out_, true}},
                  options_);
  arguments.push_back({"--detach", "", "submit, print the job's number and return", &detach_});
  own_.AddTo(arguments);
  return arguments;
}

StatusOr<ExitCode> ConvertCommand::Run(Session& session) {
  const InterruptScope interrupts;
  PB_ASSIGN_OR_RETURN(SlideJobRequest request, RequestSlideJob("convert", sources_, out_));
  request.payload = PayloadOf(options_);
  return RunStagedJob(session, {std::move(request), &own_, detach_});
}

}  // namespace

const char kConvertNote[] =
    "Stores keep pixels and label sets; svs and tiff hold the kept tiles, byte for byte.\n"
    "configs/stores.md says what such files lack. Exit code 3: some stores failed, see\n"
    "DIR/failed.csv. After a kill, run the command again.\n";

std::unique_ptr<Command> MakeConvert() { return std::make_unique<ConvertCommand>(); }

}  // namespace patchbay::cli
