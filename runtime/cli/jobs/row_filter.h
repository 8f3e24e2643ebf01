// The rows of a table that a command takes: by the column `use`, and by conditions of its flags.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/model/plan/cohort_table.h"

namespace patchbay::cli {

/// Conditions on columns, all of which must hold.
class RowFilter {
 public:
  /// Each "column=value", with =, !=, <, <=, > or >=; the last four compare numbers.
  /// InvalidArgument names the text that is not a condition.
  static StatusOr<RowFilter> Parse(const std::vector<std::string>& conditions);

  /// False for a row that a condition leaves out, or whose column `use` is 0. A cell without a
  /// value meets no comparison of numbers. InvalidArgument, naming file, line and column: no such
  /// column, a number is compared with text, a `use` other than 0, 1 and nothing.
  StatusOr<bool> Takes(const plan::CohortTable& table, const plan::CohortRow& row) const;

 private:
  struct Condition {
    std::string column, comparison, value;
    double number = 0;  ///< the value as a number, where numbers are compared
  };
  std::vector<Condition> conditions_;
};

}  // namespace patchbay::cli
