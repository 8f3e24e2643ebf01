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
std::string Settled(const SubjectTable& table, const std::string& text) {
  return Settled(table, absl::NotFoundError(text));
}

TEST(SubjectTable, NamesInsideAStoreThatTheFormatFixesStay) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases", "/other/b.ome.zarr"}}});
  const auto settled = [&](const char* path) {
    const std::string text = Settled(table, StrCat("read: ", path, ": gone"));
    EXPECT_EQ(Settled(table, FileError(absl::StatusCode::kNotFound, "read", path, "gone")), text);
    return text;
  };
  EXPECT_EQ(settled("/cases/Jane Roe/a.ome.zarr/zarr.json"), "read: store 0/.../zarr.json: gone");
  EXPECT_EQ(settled("/cases/Jane Roe/a.ome.zarr/0/zarr.json"),
            "read: store 0/.../0/zarr.json: gone");
  EXPECT_EQ(settled("/cases/a.ome.zarr/0/c/1/2"), "read: store 0/.../0/c/1/2: gone");
  EXPECT_EQ(settled("/cases/a.ome.zarr/0/c/1/2 chunk (0,1)"),
            "read: store 0/.../0/c/1/2 chunk (0,1): gone");
  EXPECT_EQ(settled("/other/b.ome.zarr/zarr.json"), "read: store 1/zarr.json: gone");
  EXPECT_EQ(settled("/other/b.ome.zarr/0/c/1/2"), "read: store 1/0/c/1/2: gone");
}

TEST(SubjectTable, NamesThatPeopleGaveAreHiddenInsideAStoreToo) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases"}}});
  EXPECT_EQ(Settled(table, "/cases/a.zarr/labels/Jane Roe/0/zarr.json: gone"),
            "store 0/.../labels/.../0/zarr.json: gone");
  EXPECT_EQ(Settled(table, "/cases/a.zarr/labels/1234/zarr.json: gone"),
            "store 0/.../labels/.../zarr.json: gone");
  EXPECT_EQ(Settled(table, "/cases/a.zarr/Jane/Roe/zarr.json: gone"),
            "store 0/.../zarr.json: gone");
}

TEST(SubjectTable, OutsideAStoreNothingBelowIsShown) {
  SubjectTable table;
  table.AddManifest({{"images", {"/cases"}}});
  EXPECT_EQ(Settled(table, "/cases/1234/5678: gone"), "store 0/...: gone");
  EXPECT_EQ(Settled(table, "/cases/c/zarr.json: gone"), "store 0/...: gone");
  EXPECT_EQ(Settled(table, "/cases/1234.svs: gone"), "store 0/...: gone");
  EXPECT_EQ(Settled(table, "/cases: gone"), "store 0: gone");
  EXPECT_EQ(Settled(table, "/cases, 2 of 3: gone"), "store 0, 2 of 3: gone");
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
  EXPECT_EQ(Settled(table, "publish: /results/a.ome.zarr: exists"),
            "publish: OUT/a.ome.zarr: exists");
  EXPECT_EQ(Settled(table, "image 2 is unlike /cases/slide 3: image 2.svs; see slide 3"),
            "image 2 is unlike slide 7; see slide 3");
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
