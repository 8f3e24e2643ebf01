// How a table, or a user, names one CT series of a folder that holds several: FOLDER#PSEUDONYM.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace patchbay {

inline constexpr std::size_t kSeriesDigits = 16;

struct SeriesPath {
  std::string path;    ///< the folder
  std::string series;  ///< 16 hex digits, the series' pseudonym; "": all series
};

/// Splits at the last '#', if 16 hex digits follow and end the path.
inline SeriesPath SplitSeriesPath(std::string_view named) {
  const std::size_t at = named.rfind('#');
  const bool is_named = at != std::string_view::npos && named.size() == at + 1 + kSeriesDigits &&
                        named.find_first_not_of("0123456789abcdef", at + 1) == std::string::npos;
  if (!is_named) return {std::string(named), ""};
  return {std::string(named.substr(0, at)), std::string(named.substr(at + 1))};
}

}  // namespace patchbay
