#include "workers/process/heartbeat_watch.h"

#include <algorithm>

#include <fcntl.h>
#include <unistd.h>

namespace patchbay::workers {
namespace {

constexpr long kLookCloserMs = 2 * HeartbeatWatch::kLookEveryMs;  ///< no need to before

/// The beginning of a file of the main thread of a process; "" when it is gone.
std::string ReadOfMainThread(pid_t pid, const char* name) {
  const std::string number = std::to_string(pid);
  const std::string path = "/proc/" + number + "/task/" + number + "/" + name;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[512];
  const ssize_t got = read(fd, text, sizeof(text));
  close(fd);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// R, S, D, T, t, Z ... of proc(5); 0 when it is gone.
char StateOf(pid_t pid) {
  const std::string stat = ReadOfMainThread(pid, "stat");
  const std::size_t at = stat.rfind(')');  // the name before it may hold anything
  return at == std::string::npos || at + 2 >= stat.size() ? '\0' : stat[at + 2];
}

}  // namespace

void HeartbeatWatch::Start(long now_ms) {
  *this = HeartbeatWatch();
  beat_ms_ = active_ms_ = looked_ms_ = now_ms;
}

void HeartbeatWatch::Beat(long now_ms) {
  beats_ = true;
  beat_ms_ = active_ms_ = now_ms;
  run_time_.clear();
}

bool HeartbeatWatch::Lost(pid_t pid, long now_ms) {
  const bool paused = now_ms - looked_ms_ > kWatcherPausedMs;
  looked_ms_ = now_ms;
  if (paused) beat_ms_ = active_ms_ = now_ms;
  if (now_ms - beat_ms_ < kLookCloserMs) return false;
  const char state = StateOf(pid);
  if (state == 'D' || state == 't') {
    beat_ms_ = active_ms_ = now_ms;
    return false;
  }
  // Run time, time spent waiting for a core, and how often it was put on one.
  std::string run_time = ReadOfMainThread(pid, "schedstat");
  const bool ran = !run_time_.empty() && run_time != run_time_;
  if (state == 'R' || ran) active_ms_ = now_ms;
  run_time_ = std::move(run_time);
  if (beats_ && now_ms - beat_ms_ >= kBusySilentMs) return true;
  return now_ms - active_ms_ >= (beats_ ? kSilentMs : kStartSilentMs);
}

}  // namespace patchbay::workers
