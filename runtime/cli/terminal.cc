#include "runtime/cli/terminal.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/core/printable.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

bool Write(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

/// Columns of the terminal of stderr; a large number if unknown.
std::size_t Columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 1000;
  return size.ws_col;
}

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string Pad(const std::string& cell, std::size_t width, bool right) {
  const std::string space(width > cell.size() ? width - cell.size() : 0, ' ');
  return right ? space + cell : cell + space;
}

}  // namespace

Terminal::Terminal(bool json) : json_(json), live_(isatty(STDERR_FILENO) == 1) {}

void Terminal::Say(std::string_view line) {
  if (json_) return;
  EndProgress();
  WriteResult(StrCat(Printable(line), "\n"));
}

void Terminal::SayText(std::string_view text) {
  for (std::string_view line : LinesOf(text)) {
    if (line.ends_with('\r')) line.remove_suffix(1);  // lines of CSV end so
    Say(line);
  }
}

void Terminal::Result(const Json& object) {
  if (json_) WriteResult(DumpJson(object) + "\n");
}

void Terminal::WriteResult(std::string_view text) {
  if (!Write(stdout, text) && written_.ok()) {
    written_ = FromErrno("write result", "standard output", errno);
  }
}

void Terminal::Failure(const Json& object) {
  if (!json_) return;
  EndProgress();
  Write(stderr, DumpJson(object) + "\n");
}

void Terminal::Note(std::string_view line) {
  EndProgress();
  Write(stderr, StrCat(Printable(line), "\n"));
}

void Terminal::NoteText(std::string_view text) {
  for (const std::string_view line : LinesOf(text)) Note(line);
}

void Terminal::Error(std::string_view text) { Note(StrCat("patchbay: ", text)); }

void Terminal::Progress(std::string_view text) {
  const std::string line = Printable(text);
  if (!live_) {
    Write(stderr, StrCat(line, "\n"));
    return;
  }
  Write(stderr, StrCat(kClearLine, FirstColumns(line, Columns() - 1)));
  drawn_ = true;
}

void Terminal::EndProgress() {
  if (drawn_) Write(stderr, "\n");
  drawn_ = false;
}

std::string_view FirstColumns(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (begins && columns-- == 0) break;
  }
  return text.substr(0, at);
}

std::vector<std::string> FormatTable(const std::vector<std::vector<std::string>>& rows,
                                     const std::vector<bool>& right) {
  std::vector<std::vector<std::string>> shown = rows;
  std::vector<std::size_t> widths;
  for (auto& row : shown) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = Printable(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : shown) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += Pad(row[i], widths[i], i < right.size() && right[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
  return lines;
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string MegabytesPerSecond(double bytes_per_s) {
  const double megabytes = bytes_per_s * 1e-6;
  return Fixed(megabytes, megabytes < 10 ? 1 : 0) + " MB/s";
}

std::string HumanSeconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 10) return Fixed(seconds, 1) + " s";
  if (seconds < 60) return Fixed(seconds, 0) + " s";
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 3.6e8)));
  char text[64];
  if (whole < 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text;
}

}  // namespace patchbay::cli
