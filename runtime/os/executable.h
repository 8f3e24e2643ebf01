// Where this program's own binaries are: our processes start one another from there.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace patchbay {

/// The folder of the running program's siblings (`patchbay`, `patchbay-worker`, ...), without a
/// trailing slash. From an archive made by deploy/bundle the kernel runs the archive's own loader,
/// `<root>/lib/ld-linux-*.so.*`; the programs to start are then the launchers in `<root>/bin`.
StatusOr<std::string> OwnBinaryFolder();

/// OwnBinaryFolder() + "/" + name; NotFound when there is no such executable.
StatusOr<std::string> SiblingBinary(std::string_view name);

/// The path of a program as a shell finds it: `name` if it has a slash, else in the first folder of
/// `path` (the variable's value) that has such an executable. NotFound without one.
StatusOr<std::string> ProgramInPath(std::string_view name, std::string_view path);

/// The rule of OwnBinaryFolder for the target of /proc/self/exe.
std::string BinaryFolderOf(const std::string& executable);

}  // namespace patchbay
