// Errors that travel hold numbers in place of paths.
#include "workers/access/subject_table.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/strings.h"

namespace patchbay::workers {
namespace {

std::string Settled(const SubjectTable& table, const Status& status) {
  return std::string(MessageOf(table.Settle(status)));
}
std::string Read(const SubjectTable& table, std::string_view path) {
  return Settled(table, ErrorAbout(absl::StatusCode::kNotFound, "read", path, "gone"));
}

TEST(SubjectTable, NamesInsideAStoreThatTheFormatFixesStay) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases", "/other/b.ome.zarr"}}});
  EXPECT_EQ(Read(table, "/cases/Jane Roe/a.ome.zarr/zarr.json"),
            "read: store 0/.../zarr.json: gone");
  EXPECT_EQ(Read(table, "/cases/Jane Roe/a.ome.zarr/0/zarr.json"),
            "read: store 0/.../0/zarr.json: gone");
  EXPECT_EQ(Read(table, "/cases/a.ome.zarr/0/c/1/2"), "read: store 0/.../0/c/1/2: gone");
  EXPECT_EQ(Read(table, "/other/b.ome.zarr/zarr.json"), "read: store 1/zarr.json: gone");
  EXPECT_EQ(Read(table, "/other/b.ome.zarr/0/c/1/2"), "read: store 1/0/c/1/2: gone");
}

TEST(SubjectTable, NamesThatPeopleGaveAreHiddenInsideAStoreToo) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases"}}});
  EXPECT_EQ(Read(table, "/cases/a.zarr/labels/Jane Roe/0/zarr.json"),
            "read: store 0/.../labels/.../0/zarr.json: gone");
  EXPECT_EQ(Read(table, "/cases/a.zarr/labels/1234/zarr.json"),
            "read: store 0/.../labels/.../zarr.json: gone");
  EXPECT_EQ(Read(table, "/cases/a.zarr/Jane/Roe/zarr.json"), "read: store 0/.../zarr.json: gone");
  EXPECT_EQ(Read(table, "/cases/a.zarr/0 chunk (JANE ROE/zarr.json"),
            "read: store 0/.../zarr.json: gone");
}

TEST(SubjectTable, OutsideAStoreNothingBelowIsShown) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases"}}});
  EXPECT_EQ(Read(table, "/cases/1234/5678"), "read: store 0/...: gone");
  EXPECT_EQ(Read(table, "/cases/c/zarr.json"), "read: store 0/...: gone");
  EXPECT_EQ(Read(table, "/cases/1234.svs"), "read: store 0/...: gone");
  EXPECT_EQ(Read(table, "/cases/y: JANE ROE/d: e"), "read: store 0/...: gone");
  EXPECT_EQ(Read(table, "/cases"), "read: store 0: gone");
}

TEST(SubjectTable, SubjectsAreSettledInOrderAndTextsStay) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases"}}});
  for (const char* text : {"slide 3: image 2: gone", "no end tag </ring>, 1/2 um/px, a / b"}) {
    EXPECT_EQ(Settled(table, absl::NotFoundError(text)), text);
  }
  Outcome outcome = OutcomeOf(ErrorAbout(absl::StatusCode::kNotFound, "link", "/cases", ""));
  outcome.cause = StrCat("to ", kOtherSubject, " by ", kOtherSubject);
  outcome.advice = StrCat("see ", kOtherSubject);
  outcome.others = {{SubjectKind::kNone, 0, "/cases/y: JANE ROE"},
                    {SubjectKind::kNone, 0, "/lib/a.so"},
                    {SubjectKind::kRow, 3, ""}};
  EXPECT_EQ(Settled(table, StatusOf(outcome)),
            "link: store 0: to store 0/... by a file; see row 3");
  EXPECT_EQ(TextWithoutSubject(StatusOf(outcome)), "link: to a file by a file; see row 3");
}

TEST(SubjectTable, APathIsASubjectHoweverItIsCalled) {
  SubjectTable table;
  table.AddManifest({{"sources", {"/cases"}}, {"out", "/results"}});
  table.Add("/cases/slide 3: image 2.svs", {SubjectKind::kSlide, 7, ""});
  const Status status = table.Settle(FromErrno("open", "/cases/slide 3: image 2.svs", ENOENT));
  EXPECT_EQ(MessageOf(status), "open: slide 7: No such file or directory");
  EXPECT_EQ(OutcomeOf(status).subject, (Subject{SubjectKind::kSlide, 7, ""}));
  EXPECT_EQ(Settled(table, FromErrno("open", "/cases/Jane: Roe.svs", ENOENT)),
            "open: file 0/...: No such file or directory");
  EXPECT_EQ(Settled(table, FromErrno("publish", "/results/a.ome.zarr", EEXIST)),
            "publish: OUT/a.ome.zarr: File exists");
}

TEST(SubjectTable, AStoreAndItsAnnotationHaveTheNumberOfTheirRow) {
  SubjectTable table;
  table.AddManifest({{"label_rows",
                      {{{"store", "/cases/a.zarr"}, {"file", "/drawn/Jane Roe.xml"}},
                       {{"store", "/cases/b.zarr"}}}}});
  EXPECT_EQ(Read(table, "/drawn/Jane Roe.xml"), "read: file 0: gone");
  EXPECT_EQ(Read(table, "/cases/b.zarr/zarr.json"), "read: store 1/zarr.json: gone");
}

TEST(SubjectTable, APathOfNoRowIsNotShown) {
  SubjectTable table;
  table.AddManifest({{"sources", {"/cases"}}});
  EXPECT_EQ(Settled(table, FromErrno("open", "/cases 2/Jane Roe.svs", ENOENT)),
            "open: a file: No such file or directory");
  EXPECT_EQ(Settled(table, FromErrno("open", "/proc/self/status", ENOENT)),
            "open: /proc/self/status: No such file or directory");
}

}  // namespace
}  // namespace patchbay::workers
