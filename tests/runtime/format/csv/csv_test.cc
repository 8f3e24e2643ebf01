#include "runtime/format/csv/csv.h"

#include <gtest/gtest.h>

namespace patchbay {
namespace {

using Rows = std::vector<std::vector<std::string>>;

TEST(Csv, FieldsAreQuotedOnlyWhereTheyHaveToBe) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"x\""), "\"say \"\"x\"\"\"");
}

TEST(Csv, ReadsBackWhatItWrites) {
  const std::vector<std::string> row = {"1", "", "/a,b/\"c\"\nd.svs", "e\r\nf"};
  std::vector<std::string> fields;
  for (const std::string& text : row) fields.push_back(CsvField(text));
  EXPECT_EQ(ParseCsv("index,id\r\n" + CsvRow(fields)), (Rows{{"index", "id"}, row}));
}

TEST(Csv, ToleratesWhatOthersWrite) {
  EXPECT_EQ(ParseCsv("a,b\n\nc,d"), (Rows{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(ParseCsv("\"open"), (Rows{{"open"}}));
  EXPECT_EQ(ParseCsv(",\n"), (Rows{{"", ""}}));
  EXPECT_TRUE(ParseCsv("").empty());
}

TEST(Csv, TellsTheLineOfEveryRowAndOfAnOpenQuote) {
  const CsvLines table = ParseCsvLines("a;b\r\n\r\n\"x\ny\";2\r\nz;\"3", ';');
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[1].fields, (std::vector<std::string>{"x\ny", "2"}));
  EXPECT_EQ(table.rows[1].line, 3);
  EXPECT_EQ(table.rows[2].line, 5);
  EXPECT_EQ(table.open_quote, 5);
}

}  // namespace
}  // namespace patchbay
