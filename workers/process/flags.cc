#include "workers/process/flags.h"

#include <algorithm>
#include <charconv>

namespace patchbay::workers {
namespace {

Status Wrong(std::string_view flag, std::string_view why) {
  return InvalidArgument("read flags: ", flag, ": ", why);
}

}  // namespace

StatusOr<Flags> Flags::Parse(const std::vector<std::string>& words,
                             const std::vector<std::string>& known) {
  Flags flags;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (words[i].rfind("--", 0) != 0) return Wrong(words[i], "expected a flag");
    const std::string name = words[i].substr(2);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string nearest = Nearest(name, known);
      return Wrong(words[i], nearest.empty()
                                 ? std::string("no such flag")
                                 : StrCat("no such flag, did you mean --", nearest, "?"));
    }
    if (i + 1 == words.size()) return Wrong(words[i], "needs a value");
    if (!flags.values_.emplace(name, words[i + 1]).second) return Wrong(words[i], "given twice");
  }
  return flags;
}

std::string Flags::Text(const std::string& name, const std::string& fallback) const {
  const auto it = values_.find(name);
  return it == values_.end() ? fallback : it->second;
}

StatusOr<std::string> Flags::Required(const std::string& name) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return Wrong(StrCat("--", name), "is needed");
  return it->second;
}

StatusOr<std::uint64_t> Flags::Number(const std::string& name, std::uint64_t fallback,
                                      std::uint64_t least, std::uint64_t most) const {
  const auto it = values_.find(name);
  if (it == values_.end()) return fallback;
  const std::string& text = it->second;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return Wrong(StrCat("--", name),
                 StrCat("expected a whole number in ", least, "..", most, ", not '", text, "'"));
  }
  return value;
}

StatusOr<int> ReadyFd(const Flags& flags) {
  if (!flags.Has("ready-fd")) return -1;
  PB_ASSIGN_OR_RETURN(const std::uint64_t fd, flags.Number("ready-fd", 0, 0, 1'000'000));
  return static_cast<int>(fd);
}

}  // namespace patchbay::workers
