// A table of images as a spreadsheet writes it: one row per image; columns that Patchbay does not
// know are allowed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/source/slide_choice.h"

namespace patchbay::plan {

inline constexpr std::size_t kMaxCohortBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxCohortColumns = 1'000;

struct CohortRow {
  int line = 0;                    ///< line of the file, from 1
  std::vector<std::string> cells;  ///< one per column, without surrounding spaces
  std::string slide_id;            ///< value of the column, or the stem of the path
};

/// Values as they stand in the file: a number, a date or 007 stays the text it is.
struct CohortTable {
  std::string source;  ///< name of the file in messages
  std::vector<std::string> columns;
  std::vector<CohortRow> rows;

  std::optional<std::size_t> Column(std::string_view name) const;
  /// The cell, or "" where there is no such column.
  const std::string& Cell(const CohortRow& row, std::string_view column) const;
  /// "cohort.csv:12: column 'slide_id': cause".
  Status Wrong(const CohortRow& row, std::string_view column, std::string_view cause) const;
};

/// Whether the path names a table instead of images: it ends in .csv or .tsv.
bool NamesTable(std::string_view path);

/// The name of a file without its folder and its ending (.svs, .ome.tif, .nii.gz, .zarr).
std::string StemOf(std::string_view path);

/// Reads a table with separators ',' ';' or tab (whichever its first line has most of), a byte
/// order mark or none, and quotes. InvalidArgument with file and line: no column `path`, a column
/// named twice, a cell too many, an empty path, a slide_id or a path that stands in two rows, a
/// content_hash that is not a SHA-256, text that is not UTF-8.
StatusOr<CohortTable> ParseCohortTable(std::string_view text, std::string_view source);

inline constexpr char kModalityColumn[] = "modality";

/// The row's modality as Modality::ToString has it; "" where the cell is empty or there is no such
/// column. InvalidArgument naming the row of another text.
StatusOr<std::string> ModalityOf(const CohortTable& table, const CohortRow& row);

/// The part of a DICOM slide that the row's cells choose, for `ingest` and streams alike.
/// InvalidArgument naming the row of a cell that is no height or no name.
StatusOr<SlideChoice> SlideChoiceOf(const CohortTable& table, const CohortRow& row);

}  // namespace patchbay::plan
