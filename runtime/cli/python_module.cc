#include "runtime/cli/python_module.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace patchbay::cli {
namespace {

/// The Python program that begins the command: it says what is missing, in one line.
constexpr char kBegin[] =
    "import importlib, sys\n"
    "name = sys.argv.pop(1)\n"
    "try:\n"
    "    import numpy\n"
    "    main = importlib.import_module(f'patchbay.{name}.__main__').main\n"
    "except ImportError as error:\n"
    "    sys.exit(f'error: start {name}: {sys.executable}: {error}: install '\n"
    "             'patchbay-runtime[map] there, or name another Python with PATCHBAY_PYTHON')\n"
    "sys.exit(main(sys.argv[1:]))\n";

}  // namespace

void AddFlag(std::vector<std::string>& words, const char* flag, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {flag, value});
}

Status BecomePython(const Session& session, const std::string& module,
                    std::vector<std::string> words) {
  words.insert(words.begin(), {session.environment.python, "-c", kBegin, module});
  AddFlag(words, "--cluster", session.cluster_file);
  if (session.terminal.json()) words.emplace_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return NotFound("start ", module, ": ", words[0], ": ", strerror(errno),
                  ": name a Python with PATCHBAY_PYTHON");
}

}  // namespace patchbay::cli
