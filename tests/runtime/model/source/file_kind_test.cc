// Kinds of files that are skipped.
#include "runtime/model/source/file_kind.h"

#include <gtest/gtest.h>

namespace patchbay {
namespace {

TEST(KindOfFile, IsTheWellKnownEndOfItsNameAndNothingElse) {
  EXPECT_EQ(KindOfFile("/a/b.DCM"), "dcm");
  EXPECT_EQ(KindOfFile("b.nii.gz"), "gz");
  EXPECT_EQ(KindOfFile("scan.of_john_doe"), "other");
  EXPECT_EQ(KindOfFile("README"), "other");
  EXPECT_EQ(KindOfFile(".svs"), "other");
}

TEST(NamesSlide, GoesByTheEndOfTheNameInAnyCase) {
  for (const char* slide : {"a.svs", "/a.b/C.NDPI", "b.ome.tiff", "c.mrxs", "d.svslide", "e.btf"}) {
    EXPECT_TRUE(NamesSlide(slide)) << slide;
    EXPECT_EQ(KindOfFile(slide), ExtensionOf(slide).substr(1)) << "well known";
  }
  for (const char* other : {"a.czi", "a.jpg", "a", ".svs", "a.svs.gz", "svs"}) {
    EXPECT_FALSE(NamesSlide(other)) << other;
  }
}

TEST(NamesUnreadSlide, HasTheFormatsOfMicroscopesAndNoSideFiles) {
  for (const char* slide : {"a.czi", "b.LIF", "c.lsm", "d.oir", "e.zvi", "f.vsi"}) {
    EXPECT_TRUE(NamesUnreadSlide(slide)) << slide;
  }
  for (const char* other : {"a.svs", "a.ndpis", "a.txt", "lsm"}) {
    EXPECT_FALSE(NamesUnreadSlide(other)) << other;
  }
}

TEST(FilesByKind, ReadAsPeopleCountThem) {
  EXPECT_EQ(TextOf(FilesByKind{{"dcm", 3}, {"other", 2}, {"txt", 1}}), "3 .dcm, 2 other, 1 .txt");
  EXPECT_EQ(TextOf(FilesByKind{{"FIFO", 1}, {"dangling link", 2}, {"dcm", 3}, {"link", 2}}),
            "1 FIFO, 2 dangling links, 3 .dcm, 2 links");
  EXPECT_EQ(TextOf(FilesByKind{{"dcm", 0}}), "");
  EXPECT_EQ(TextOf(FilesByKind{}), "");
}

TEST(FilesByKind, LeaveOutWhatTurnedOutToBeRead) {
  FilesByKind files = {{"dcm", 2}, {"txt", 1}};
  LeaveOut({"a.dcm", "b.txt", "c.txt", "d.nii"}, files);
  EXPECT_EQ(files, (FilesByKind{{"dcm", 1}}));
}

}  // namespace
}  // namespace patchbay
