// Selects the rows of a cohort table for a run by `where`, `split_column` and a split, and checks
// that splits share no patients and slides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/cohort_table.h"
#include "runtime/model/plan/run_config.h"

namespace patchbay::plan {

/// Row numbers of CohortTable::rows, in the table's order.
using CohortRows = std::vector<std::size_t>;

/// The rows that pass `where` and, unless `split` is "" or kAllSplits, are in the split.
/// InvalidArgument:
/// - naming a key of the config: a missing column, a split column with one value, an
///   entry of `splits` that is not a value of the column;
/// - naming a row: a patient_id or a content_hash in two splits (rows without a split are in none),
///   a content_hash in two rows, a split called kAllSplits, two that differ only in case;
/// - no row is left, or `split` is not a value of the column.
StatusOr<CohortRows> SelectRows(const CohortTable& table, const RunConfig& config,
                                std::string_view split);

/// How many rows `where` leaves, nothing being compared.
StatusOr<std::size_t> CountRows(const CohortTable& table, const RunConfig& config);

/// The splits of a table, and the rows whose patients were compared.
struct SplitCensus {
  struct Split {
    std::size_t rows = 0;
    std::optional<SplitRole> role;
  };
  std::map<std::string, Split> splits;
  std::size_t rows = 0;           ///< rows in a split
  std::size_t without_split = 0;  ///< rows whose split cell is empty
  std::size_t with_patient = 0;   ///< rows in a split that have a patient_id
  /// Rows without a split or a patient, a column patient_id that is not there, ids that differ only
  /// in case: one sentence each.
  std::vector<std::string> notices;
};
/// The census of `rows`, which SelectRows gave for all splits. Requires config.split_column.
SplitCensus CensusOf(const CohortTable& table, const RunConfig& config, const CohortRows& rows);

/// For each of `rows` and each column of sampling.weight_by, the number of the row's value among
/// the values that rows with the same values in the columns before have, counted from 0 in the
/// order of their first rows. InvalidArgument naming the key of a column that is not there, or the
/// row of a cell that is empty.
StatusOr<std::vector<std::vector<std::uint32_t>>> GroupsOf(const CohortTable& table,
                                                           const RunConfig& config,
                                                           const CohortRows& rows);

/// The integer of each of `rows` in the column labels.label.column, kIgnoreClass where the cell is
/// empty. InvalidArgument naming the key of a column that is not there or is empty in every row of
/// the table, or the row of a cell that is not an integer; "3.0", as some tools write 3, is one.
StatusOr<std::vector<std::int64_t>> LabelsOf(const CohortTable& table, const RunConfig& config,
                                             const CohortRows& rows);

/// The scanner of stain_normalize of each of some rows.
struct RowScanners {
  /// Entries of the config that occur in rows, in order of occurrence.
  std::vector<std::string> names;
  std::vector<std::uint32_t> of_rows;  ///< index into `names`, by row
};
/// InvalidArgument naming the key of a column that is not there, or the row of a scanner that the
/// config does not list. Requires stain_normalize by scanner.
StatusOr<RowScanners> ScannersOf(const CohortTable& table, const RunConfig& config,
                                 const CohortRows& rows);

inline constexpr char kMppColumn[] = "mpp";

/// The um/px of each of `rows` in the column, nullopt where the cell is empty; nothing at all for a
/// table without one. InvalidArgument naming the row of a cell that is not a positive number.
StatusOr<std::vector<std::optional<double>>> MppsOf(const CohortTable& table,
                                                    const CohortRows& rows);

/// SlideChoiceOf each of `rows`.
StatusOr<std::vector<SlideChoice>> SlideChoicesOf(const CohortTable& table, const CohortRows& rows);

}  // namespace patchbay::plan
