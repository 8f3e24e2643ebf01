#include "scheduler/http/http_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"

namespace patchbay::scheduler {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

/// Takes the text before `end` off, and `end`; all of it when there is none.
std::string_view Take(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  return taken;
}

std::string_view Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool IsWord(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) {
    return absl::ascii_tolower(static_cast<unsigned char>(a)) ==
           absl::ascii_tolower(static_cast<unsigned char>(b));
  });
}

bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || kMarks.find(static_cast<char>(c)) != kMarks.npos;
  });
}

bool IsPrintable(std::string_view text, char first) {
  return std::all_of(text.begin(), text.end(), [first](unsigned char c) {
    return c == '\t' || (c >= static_cast<unsigned char>(first) && c != 0x7F);
  });
}

/// Host of "HOST[:PORT]".
std::string_view HostIn(std::string_view value) {
  if (value.starts_with('[')) return value.substr(1, value.find(']') - 1);
  return value.substr(0, value.find(':'));
}

std::string_view SessionIn(std::string_view cookies) {
  while (!cookies.empty()) {
    std::string_view value = Trimmed(Take(cookies, ";"));
    if (Take(value, "=") == kSessionCookie) return value;
  }
  return "";
}

bool TakeHeader(std::string_view line, HttpRequest& request, bool& has_host) {
  const std::string_view name = Take(line, ":");
  std::string_view value = Trimmed(line);
  if (!IsToken(name) || line.data() == name.data() + name.size() || !IsPrintable(value, ' ')) {
    return false;
  }
  if (IsWord(name, "Host")) {
    request.host = HostIn(value);
    return !std::exchange(has_host, true);
  }
  if (IsWord(name, "Cookie")) request.session = SessionIn(value);
  if (IsWord(name, kOwnPageHeader)) request.from_own_page = true;
  const bool has_body =
      IsWord(name, "Transfer-Encoding") || (IsWord(name, "Content-Length") && value != "0");
  if (has_body || (IsWord(name, "Connection") && !IsWord(value, "keep-alive"))) {
    request.may_continue = false;
  }
  if (IsWord(name, "Authorization") && IsWord(Take(value, " "), "Bearer")) {
    request.token = Trimmed(value);
  }
  return true;
}

}  // namespace

std::optional<HttpRequest> ParseRequest(std::string_view head) {
  HttpRequest request;
  std::string_view line = Take(head, kLineEnd);
  request.method = Take(line, " ");
  std::string_view target = Take(line, " ");
  if (!IsToken(request.method) || !target.starts_with('/') || !IsPrintable(target, '!') ||
      (line != "HTTP/1.1" && line != "HTTP/1.0")) {
    return std::nullopt;
  }
  request.may_continue = line == "HTTP/1.1";
  request.path = Take(target, "?");
  for (bool has_host = false;;) {
    line = Take(head, kLineEnd);
    if (line.empty()) return request;
    if (!TakeHeader(line, request, has_host)) return std::nullopt;
  }
}

}  // namespace patchbay::scheduler
