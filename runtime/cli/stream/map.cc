// patchbay map RUN.yaml: the user's function over every patch, in the user's own Python
// (runtime/python/patchbay/map).
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "runtime/cli/commands.h"
#include "runtime/cli/stream/run_arguments.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

/// The Python program that begins the command: it says what is missing, in one line.
constexpr char kBegin[] =
    "import sys\n"
    "try:\n"
    "    import numpy\n"
    "    from patchbay.map.__main__ import main\n"
    "except ImportError as error:\n"
    "    sys.exit(f'error: start map: {sys.executable}: {error}: install patchbay-runtime[map] '\n"
    "             'there, or name another Python with PATCHBAY_PYTHON')\n"
    "sys.exit(main(sys.argv[1:]))\n";

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
    std::vector<std::string> words = {
        session.environment.python, "-c", kBegin, path_, "--call", call_, "--out", out_};
    const auto add = [&words](const char* flag, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {flag, value});
    };
    add("--devices", devices_);
    add("--timeout", timeout_);
    add("--split", split_);
    add("--cluster", session.cluster_file);
    for (const std::string& value : set_) add("--set", value);
    if (new_) words.emplace_back("--new");
    if (session.terminal.json()) words.emplace_back("--json");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    return NotFound("start map: ", words[0], ": ", strerror(errno),
                    ": name a Python with PATCHBAY_PYTHON");
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
