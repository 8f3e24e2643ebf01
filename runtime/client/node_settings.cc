#include "runtime/client/node_settings.h"

#include <cerrno>

#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/format/json/json.h"
#include "runtime/os/executable.h"

namespace patchbay::client {

std::string FunctionsOfUser(const std::string& python) {
  return python.empty() ? "" : DumpJson({{"python", python}});
}

StatusOr<std::string> ProgramPath(const std::string& programs, std::string_view name) {
  if (programs.empty()) return SiblingBinary(name);
  const std::string path = StrCat(programs, "/", name);
  if (access(path.c_str(), X_OK) != 0) return FromErrno("find program", path, errno);
  return path;
}

StatusOr<std::vector<std::string>> SupervisorCommand(const NodeSettings& settings) {
  PB_ASSIGN_OR_RETURN(const std::string supervisor,
                      ProgramPath(settings.programs, "patchbay-supervisor"));
  PB_ASSIGN_OR_RETURN(const std::string agent, ProgramPath(settings.programs, "patchbay-agent"));
  std::vector<std::string> words = {supervisor, "--stop-ms", std::to_string(settings.stop_ms)};
  const auto add = [&words](std::initializer_list<std::string> more) {
    words.insert(words.end(), more);
  };
  if (settings.scheduler.has_value()) {
    const SchedulerSettings& scheduler = *settings.scheduler;
    PB_ASSIGN_OR_RETURN(const std::string program,
                        ProgramPath(settings.programs, "patchbay-scheduler"));
    add({"--child", "scheduler", program, "--home", scheduler.home, "--state", scheduler.state,
         "--listen", scheduler.listen, "--grace-ms", std::to_string(settings.stop_ms)});
    if (scheduler.allow_public) add({"--allow-public"});
    if (!scheduler.metrics.empty()) add({"--metrics", scheduler.metrics});
    if (!scheduler.dashboard.empty()) add({"--dashboard", scheduler.dashboard});
    if (!scheduler.tls.empty()) add({"--tls", scheduler.tls});
    if (!scheduler.metrics_token.empty()) add({"--metrics-token", scheduler.metrics_token});
  }
  add({"--child", "agent", agent, "--key", settings.node_key, "--cpus",
       std::to_string(settings.cpus), "--gpus", settings.gpus, "--state", settings.state,
       "--drain-ms", std::to_string(settings.stop_ms / 10 * 9)});
  if (!settings.files.empty()) add({"--files", settings.files});
  if (settings.may_take_burned_in) add({"--burned-in", "allowed"});
  if (!settings.functions.empty()) add({"--functions", settings.functions});
  if (settings.memory_bytes > 0) add({"--memory", std::to_string(settings.memory_bytes)});
  if (settings.network.policy == data::NetworkPolicy::kRdma) {
    add({"--data-policy", std::string(NameOf(settings.network.policy)), "--data-address",
         settings.network.address});
  }
  return words;
}

std::optional<std::string> ReadyLines::Line(std::string_view start) const {
  std::size_t at = 0;
  for (std::size_t end; (end = text_.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text_.substr(at, end - at);
    if (line.compare(0, start.size(), start) == 0) return line.substr(start.size());
  }
  return std::nullopt;
}

}  // namespace patchbay::client
