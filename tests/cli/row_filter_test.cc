// Rows of a table by conditions.
#include "runtime/cli/jobs/row_filter.h"

#include <gtest/gtest.h>

namespace patchbay::cli {
namespace {

constexpr char kTable[] =
    "path,phase,thickness_mm,use\na.nii,portal,1.5,1\nb.nii,portal,5,\nc.nii,arterial,,0\n"
    "d.nii,arterial,3,\n";

/// The paths of the selected rows, or the error.
std::string Taken(const std::vector<std::string>& conditions, const std::string& text = kTable) {
  const auto filter = RowFilter::Parse(conditions);
  if (!filter.ok()) return std::string(filter.status().message());
  const auto table = plan::ParseCohortTable(text, "t.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  std::string taken;
  for (const plan::CohortRow& row : table->rows) {
    const auto takes = filter->Takes(*table, row);
    if (!takes.ok()) return std::string(takes.status().message());
    if (*takes) taken += table->Cell(row, "path").substr(0, 1);
  }
  return taken;
}

TEST(RowFilter, TakesWhatMeetsAllConditions) {
  EXPECT_EQ(Taken({}), "abd");
  EXPECT_EQ(Taken({"thickness_mm<=3"}), "ad");
  EXPECT_EQ(Taken({"thickness_mm<3"}), "a");
  EXPECT_EQ(Taken({"thickness_mm>=3", "phase=portal"}), "b");
  EXPECT_EQ(Taken({"thickness_mm>1.5", "phase!=portal"}), "d");
  EXPECT_EQ(Taken({"thickness_mm>3"}), "b") << "without its bound";
  EXPECT_EQ(Taken({"phase=venous"}), "");
}

TEST(RowFilter, NamesWhatItCannotCompare) {
  for (const char* bad : {"thickness_mm", "<=3", "thickness_mm<=thin",
                          "thickness_mm<=", "thickness_mm<=3mm", "a=<3", "phase==portal", ""}) {
    EXPECT_NE(Taken({bad}).find("--where '"), std::string::npos) << bad;
  }
  EXPECT_NE(Taken({"slices<3"}).find("t.csv: no column 'slices'"), std::string::npos);
  EXPECT_NE(Taken({"phase<3"}).find("t.csv:2: column 'phase': 'portal': not a number"),
            std::string::npos);
  EXPECT_NE(
      Taken({"thickness_mm<3"}, "path,thickness_mm\na.nii,1.5 mm\n").find("'1.5 mm': not a number"),
      std::string::npos);
  EXPECT_NE(Taken({}, "path,use\na.nii,yes\n").find("t.csv:2: column 'use': 'yes'"),
            std::string::npos);
}

}  // namespace
}  // namespace patchbay::cli
