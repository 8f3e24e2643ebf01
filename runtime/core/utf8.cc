#include "runtime/core/utf8.h"

#include <array>

namespace patchbay {
namespace {

/// A lead byte: how many bytes its character has, and what the second one may be.
struct Lead {
  unsigned char first, last;
  std::size_t length;
  unsigned char second_min, second_max;
};
constexpr std::array kLeads = {Lead{0x01, 0x7F, 1, 0, 0},       Lead{0xC2, 0xDF, 2, 0x80, 0xBF},
                               Lead{0xE0, 0xE0, 3, 0xA0, 0xBF}, Lead{0xE1, 0xEC, 3, 0x80, 0xBF},
                               Lead{0xED, 0xED, 3, 0x80, 0x9F}, Lead{0xEE, 0xEF, 3, 0x80, 0xBF},
                               Lead{0xF0, 0xF0, 4, 0x90, 0xBF}, Lead{0xF1, 0xF3, 4, 0x80, 0xBF},
                               Lead{0xF4, 0xF4, 4, 0x80, 0x8F}};

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Lead& lead : kLeads) {
    if (byte(0) < lead.first || byte(0) > lead.last) continue;
    if (text.size() < lead.length) return 0;
    for (std::size_t i = 1; i < lead.length; ++i) {
      const unsigned char min = i == 1 ? lead.second_min : 0x80;
      const unsigned char max = i == 1 ? lead.second_max : 0xBF;
      if (byte(i) < min || byte(i) > max) return 0;
    }
    return lead.length;
  }
  return 0;
}

}  // namespace patchbay
