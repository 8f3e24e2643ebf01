// Commands that run in the user's own Python: their part in C++ is the command line.
#pragma once

#include <string>
#include <vector>

#include "runtime/cli/command.h"

namespace patchbay::cli {

/// Replaces this process by `patchbay.MODULE`'s command in the Python of the session, with these
/// words and the session's --cluster and --json. Returns only where there is no such Python.
Status BecomePython(const Session& session, const std::string& module,
                    std::vector<std::string> words);

/// Appends a flag and its value, unless that is empty.
void AddFlag(std::vector<std::string>& words, const char* flag, const std::string& value);

}  // namespace patchbay::cli
