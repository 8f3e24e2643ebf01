// A table of places, as CLAM, Trident and TIAToolbox users keep them: slide_id, x and y at level 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/listed_positions.h"
#include "runtime/model/plan/listed_sequence.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxCoordinatesBytes = std::size_t{512} << 20;

struct SlidePlaces {
  int line = 0;                    ///< line of the slide's first place in the table
  std::uint32_t number = 0;        ///< rank of the slide by first occurrence in the table
  std::vector<PlanePoint> places;  ///< upper left pixels of level 0, in the table's order
  PlaceLabels labels;              ///< classes of the places, where a column has them
};

struct Coordinates {
  std::map<std::string, SlidePlaces> slides;  ///< by slide_id
  std::vector<ListedRun> order;      ///< runs of places of one slide, given by SlidePlaces::number
  std::vector<std::string> ignored;  ///< names of unused columns
};

/// Reads a table with separators ',' ';' or tab. A place that is listed twice counts twice.
/// `label_column` has the class of each place, kIgnoreClass where its cell is empty; "" = none.
/// InvalidArgument with file, line and column: no slide_id, x, y or label column; a cell that is
/// missing or no whole number from 0 to 2^31 - 1 ("512.0", as some tools write 512, is one); no
/// rows; more than kMaxListedPositions.
StatusOr<Coordinates> ParseCoordinates(std::string_view text, std::string_view source,
                                       const std::string& label_column = "");

}  // namespace patchbay::plan
