#include "runtime/core/log.h"

#include <memory>
#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace patchbay {
namespace {

spdlog::level::level_enum LevelOf(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kDebug:
      return spdlog::level::debug;
    case LogSeverity::kInfo:
      return spdlog::level::info;
    case LogSeverity::kWarning:
      return spdlog::level::warn;
    case LogSeverity::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

}  // namespace

void InitLogging(std::string_view process, LogSeverity lowest) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>(std::string(process), sink);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ [%n %P] %v");
  logger->set_level(LevelOf(lowest));
  spdlog::set_default_logger(logger);
}

void Log(LogSeverity severity, std::string_view text) {
  spdlog::default_logger_raw()->log(LevelOf(severity), "{}", text);
}

}  // namespace patchbay
