// patchbay map RUN.yaml: the user's function over every patch, in the user's own Python
// (runtime/python/patchbay/map).
#include "runtime/cli/commands.h"
#include "runtime/cli/python_module.h"
#include "runtime/cli/stream/run_arguments.h"

namespace patchbay::cli {
namespace {

/// Replaces this process.
class MapCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {
        {"RUN.yaml", "", "a run config with outputs", &path_, true},
        {"--call", "FILE.py", "the file that defines predict(model, batch), and load, finish",
         &call_, true},
        {"--out", "DIR", "folder of the results; goes on where some are there", &out_, true},
        {"--devices", "N,N", "CUDA devices, a process for each (default: one on the CPU)",
         &devices_},
        {"--new", "", "begin beside results of another function, weights, outputs or plan", &new_},
        {"--timeout", "S", "seconds that one call of predict may take (default: any)", &timeout_},
        SetArgument(set_),
        SplitArgument(split_)};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    std::vector<std::string> words = {path_, "--call", call_, "--out", out_};
    AddFlag(words, "--devices", devices_);
    AddFlag(words, "--timeout", timeout_);
    AddFlag(words, "--split", split_);
    for (const std::string& value : set_) AddFlag(words, "--set", value);
    if (new_) words.emplace_back("--new");
    return BecomePython(session, "map", std::move(words));
  }

 private:
  std::string path_, call_, out_, devices_, timeout_, split_;
  std::vector<std::string> set_;
  bool new_ = false;
};

}  // namespace

const char kMapNote[] =
    "Any number of these may work on one folder of results, started at any time: each takes whole\n"
    "images. Exit code 3: some images failed, with the reason and the batch in DIR/failed; 75:\n"
    "stopped, and the same command goes on. configs/map.md has the outputs.\n";

std::unique_ptr<Command> MakeMap() { return std::make_unique<MapCommand>(); }

}  // namespace patchbay::cli
