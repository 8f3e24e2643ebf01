// The limit on the size of files. In a header, so that a program without libraries has it too.
#pragma once

#include <csignal>

namespace patchbay {

/// From now on a write beyond the limit on file sizes (`ulimit -f`) fails with EFBIG, and is
/// reported as a full disk is; without this SIGXFSZ ends the process without a word. Call it first
/// in main: a child starts with the default again where its parent sets default signal actions.
inline void ReportFileLimitAsError() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace patchbay
