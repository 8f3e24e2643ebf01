// When a process began, from /proc. Without a library of ours: the launcher uses it too.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace patchbay {

struct PidLife {
  std::uint64_t started = 0;  ///< clock ticks since the machine's start
  bool ended = false;         ///< a zombie
};

/// The line of /proc/PID/stat; nullopt when there is none, or it cannot be read.
inline std::optional<PidLife> LifeOf(std::int64_t pid) {
  constexpr int kStartTimeField = 19;  // counted after the program's name
  const int fd = open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text(4096, '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::size_t at = text.rfind(") ");  // the name before it may hold anything
  if (at == std::string::npos || at + 2 >= text.size()) return std::nullopt;
  at += 2;
  PidLife life;
  life.ended = text[at] == 'Z' || text[at] == 'X';
  for (int field = 0; field < kStartTimeField; ++field) {
    at = text.find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  char* end = nullptr;
  life.started = std::strtoull(text.c_str() + at, &end, 10);
  return end == text.c_str() + at ? std::nullopt : std::optional(life);
}

}  // namespace patchbay
