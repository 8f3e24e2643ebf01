// The columns `mpp`, `focal_plane` and `optical_path` of a table.
#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "runtime/model/plan/cohort.h"

namespace patchbay::plan {
namespace {

using Mpps = std::vector<std::optional<double>>;

CohortTable TableOf(const std::string& text) {
  const auto table = ParseCohortTable(text, "c.csv");
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

TEST(TableMpps, AreThoseOfTheRowsThatAreTaken) {
  const CohortTable table = TableOf("path,mpp\na.svs,0.25\nb.svs,\nc.svs,5e-1\nd.svs,x\n");
  EXPECT_EQ(*MppsOf(table, {0, 1, 2}), (Mpps{0.25, std::nullopt, 0.5}));
  EXPECT_EQ(*MppsOf(table, {2}), (Mpps{0.5}));
  EXPECT_TRUE(MppsOf(TableOf("path\na.svs\n"), {0})->empty());
}

TEST(TableMpps, RefusesACellThatIsNoMppByLine) {
  for (const char* cell : {"20x", "0", "-0.25", "nan", "inf", "unknown", "0.25 um", "0x1"}) {
    const CohortTable table = TableOf(StrCat("path,mpp\na.svs,0.5\nb.svs,", cell, "\n"));
    EXPECT_EQ(MessageOf(MppsOf(table, {0, 1}).status()),
              StrCat("c.csv:3: column 'mpp': '", cell,
                     "' is not a number of um per pixel, as 0.25 is; leave the cell empty where "
                     "the file is right"));
  }
}

TEST(TableChoices, AreThoseOfTheRowsThatAreTaken) {
  const CohortTable table = TableOf(
      "path,focal_plane,optical_path\na.dcm,1.5,\nb.dcm,,DAPI\nc.dcm,,\nd.dcm,high,\ne.dcm,,"
      "a\tb\n");
  EXPECT_EQ(*SlideChoicesOf(table, {2, 0, 1}),
            (std::vector<SlideChoice>{{}, {1.5, ""}, {std::nullopt, "DAPI"}}));
  EXPECT_EQ(*SlideChoicesOf(TableOf("path\na.svs\n"), {0}), std::vector<SlideChoice>(1));
  EXPECT_EQ(MessageOf(SlideChoicesOf(table, {0, 3}).status()),
            "c.csv:5: column 'focal_plane': 'high': not the height of a focal plane in um, of at "
            "most 100000");
  EXPECT_TRUE(MessageOf(SlideChoicesOf(table, {4}).status())
                  .starts_with("c.csv:6: column 'optical_path': "));
}

}  // namespace
}  // namespace patchbay::plan
