// Logging to stderr (stdout belongs to results). One line an event; never a path, a file name or a
// patient's word.
#pragma once

#include <string_view>

namespace patchbay {

enum class LogSeverity { kDebug, kInfo, kWarning, kError };

/// `process` names the process in every line ("scheduler", "worker 3"). Call once from main.
void InitLogging(std::string_view process, LogSeverity lowest);

/// Thread-safe.
void Log(LogSeverity severity, std::string_view text);

inline void LogDebug(std::string_view text) { Log(LogSeverity::kDebug, text); }
inline void LogInfo(std::string_view text) { Log(LogSeverity::kInfo, text); }
inline void LogWarning(std::string_view text) { Log(LogSeverity::kWarning, text); }
inline void LogError(std::string_view text) { Log(LogSeverity::kError, text); }

}  // namespace patchbay
