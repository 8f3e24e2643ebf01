#include "runtime/core/port_range.h"

#include <charconv>

namespace patchbay {
namespace {

StatusOr<std::uint16_t> ParsePort(std::string_view text, std::string_view range) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) {
    return InvalidArgument("parse ports: ", range, ": expected FIRST-LAST, each from 1 to 65535");
  }
  return port;
}

}  // namespace

StatusOr<PortRange> ParsePortRange(std::string_view text) {
  PortRange range;
  if (text.empty()) return range;
  const std::size_t dash = text.find('-');
  PB_ASSIGN_OR_RETURN(range.first, ParsePort(text.substr(0, dash), text));
  range.last = range.first;
  if (dash != std::string_view::npos) {
    PB_ASSIGN_OR_RETURN(range.last, ParsePort(text.substr(dash + 1), text));
  }
  if (range.last < range.first) {
    return InvalidArgument("parse ports: ", text, ": it runs backwards");
  }
  return range;
}

}  // namespace patchbay
