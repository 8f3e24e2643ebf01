#include "runtime/cli/cluster/exposed_ports.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include <arpa/inet.h>

#include "runtime/core/strings.h"
#include "runtime/wire/control/address.h"

namespace patchbay::cli {
namespace {

constexpr char kListens[] = "0A";
constexpr std::size_t kHexOfWord = 8;

/// "0100007F:1E00" of /proc/net/tcp as "127.0.0.1", 7680.
control::Address AddressOf(const std::string& text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i < words.size() && (i + 1) * kHexOfWord <= colon; ++i) {
    const char* const word = text.data() + i * kHexOfWord;
    std::from_chars(word, word + kHexOfWord, words[i], 16);
  }
  control::Address address;
  if (colon < text.size()) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), address.port, 16);
  }
  std::array<char, INET6_ADDRSTRLEN> shown{};
  inet_ntop(colon > kHexOfWord ? AF_INET6 : AF_INET, words.data(), shown.data(), shown.size());
  address.host = shown.data();
  return address;
}

/// Addresses of the sockets that listen, by inode.
std::map<std::string, control::Address> Listeners(const std::string& proc) {
  std::map<std::string, control::Address> listeners;
  for (const char* name : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream table(proc + name);
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
      std::istringstream words(line);
      std::vector<std::string> fields;
      for (std::string word; fields.size() < 10 && words >> word;) fields.push_back(word);
      if (fields.size() < 10 || fields[3] != kListens) continue;
      listeners.emplace(StrCat("socket:[", fields[9], "]"), AddressOf(fields[1]));
    }
  }
  return listeners;
}

/// "metrics over TLS, by token" for a port that a scheduler's command line gives a page, else "".
std::string PageAt(const std::filesystem::path& process, int port) {
  std::ifstream file(process / "cmdline");
  std::map<std::string, std::string> values;
  for (std::string word, last; std::getline(file, word, '\0'); last = word) values[last] = word;
  for (const std::string page : {"metrics", "dashboard"}) {
    const std::string& place = values["--" + page];
    if (place.substr(place.rfind(':') + 1) != StrCat(port)) continue;
    const bool by_token = page == "metrics" && values.contains("--metrics-token");
    return StrCat(page, values.contains("--tls") ? " over TLS" : "", by_token ? ", by token" : "");
  }
  return "";
}

std::string Listed(const std::set<std::string>& places) {
  return StrJoin(std::vector<std::string>(places.begin(), places.end()), ", ");
}

}  // namespace

std::string ExposedPorts(const std::string& proc) {
  namespace fs = std::filesystem;
  const std::map<std::string, control::Address> listeners = Listeners(proc);
  std::set<std::string> others, own;
  std::error_code error;
  for (const fs::directory_entry& process : fs::directory_iterator(proc, error)) {
    std::ifstream file(process.path() / "comm");
    std::string program;
    if (!std::getline(file, program) || !program.starts_with("patchbay")) continue;
    for (const fs::directory_entry& open : fs::directory_iterator(process.path() / "fd", error)) {
      const auto found = listeners.find(fs::read_symlink(open.path(), error).string());
      if (found == listeners.end()) continue;
      const std::string place = found->second.ToString().substr(std::string("tcp://").size());
      const bool is_own = control::IsLoopback(found->second.host);
      const std::string page = PageAt(process.path(), found->second.port);
      (is_own ? own : others).insert(StrCat(place, " (", page.empty() ? program : page, ")"));
    }
  }
  if (others.empty() && own.empty()) return "no program of this user listens";
  if (others.empty()) return StrCat("only this machine reaches ", Listed(own));
  const std::string found = StrCat("other machines may reach ", Listed(others));
  return own.empty() ? found : StrCat(found, "; only this one reaches ", Listed(own));
}

}  // namespace patchbay::cli
