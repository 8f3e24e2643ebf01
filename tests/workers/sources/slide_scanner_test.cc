// The scanner that a slide states, and nothing else that it says about it.
#include "workers/sources/slide_scanner.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/workers/sources/crafted_dicom.h"
#include "tests/workers/sources/slide_fixtures.h"

namespace patchbay::workers {
namespace {

class ScannerOfASlide : public testing::Test {
 protected:
  /// The fields joined.
  std::string Of(const std::string& path) {
    const auto scanner = ScannerOf(Folders::OfThisUser(), path);
    if (!scanner.ok()) return Describe(scanner.status());
    return StrCat(scanner->manufacturer, "|", scanner->model, "|", scanner->scanned_at);
  }
  std::string Tiff(const std::string& make, const std::string& model,
                   const std::string& description) {
    const std::string path = folder_.File("a.tif");
    auto writer = TiffWriter::Create(Folders::OfThisUser(), path, false);
    EXPECT_TRUE(writer.ok());
    const std::string piece(16 * 16, 'a');
    const auto offset = writer->Append(std::as_bytes(std::span(piece)));
    TiffFields f;
    f.Long(256, 16);
    f.Long(257, 16);
    f.Short(258, {8});
    f.Short(259, {1});
    f.Short(262, {1});
    if (!description.empty()) f.Text(270, description);
    if (!make.empty()) f.Text(271, make);
    if (!model.empty()) f.Text(272, model);
    f.Short(277, {1});
    f.Text(305, "CANARY software");
    if (!make.empty()) f.Text(306, "2024:05:06 07:08:09");
    f.Text(315, "CANARY artist");
    f.Text(316, "CANARY host");
    f.Long(322, 16);
    f.Long(323, 16);
    f.Offsets(324, {*offset});
    f.Offsets(325, {piece.size()});
    writer->AddDirectory(std::move(f));
    EXPECT_TRUE(writer->Commit().ok());
    return Of(path);
  }

  TemporaryFolder folder_;
};

TEST_F(ScannerOfASlide, IsThatOfTheTagsOfATiff) {
  EXPECT_EQ(Tiff("Hamamatsu", " C13220 ", ""), "Hamamatsu|C13220|2024:05:06 07:08:09");
  EXPECT_EQ(Tiff("", "", ""), "||");
  EXPECT_EQ(Tiff("a\x1b[2J", std::string(65, 'x'), ""), "a\\x1b[2J||2024:05:06 07:08:09");
}

TEST_F(ScannerOfASlide, IsThatOfAnAperioDescriptionWithoutItsNumbers) {
  EXPECT_EQ(
      Tiff("", "",
           "Aperio Leica Biosystems GT450 v1.0\r\n16x16|AppMag = 40|Date = 05/06/2024|Filename "
           "= CANARY|ScanScope ID = CANARY|ScannerType = GT450|Time = 07:08:09|User = CANARY"),
      "Aperio|GT450|05/06/2024 07:08:09");
  EXPECT_EQ(Tiff("", "", "Aperio Image Library v11|User = CANARY"), "Aperio||");
}

TEST_F(ScannerOfASlide, IsThatOfADicomInstance) {
  CraftedDicom dicom;
  dicom.frames = PatternFrames(dicom);
  dicom.more[0x0008002A] = DicomElement(0x0008002A, "DT", "20240506070809");
  dicom.more[0x00080070] = DicomElement(0x00080070, "LO", "Leica Biosystems");
  dicom.more[0x00081010] = DicomElement(0x00081010, "SH", "CANARY");
  dicom.more[0x00081090] = DicomElement(0x00081090, "LO", "GT450");
  dicom.more[0x00181000] = DicomElement(0x00181000, "LO", "CANARY");
  WriteDicom(folder_.File("a.dcm"), dicom);
  EXPECT_EQ(Of(folder_.File("a.dcm")), "Leica Biosystems|GT450|20240506070809");
  std::fstream both(folder_.File("a.dcm"), std::ios::in | std::ios::out | std::ios::binary);
  both << "II*";  // the header of a TIFF as well
  both.close();
  EXPECT_EQ(Of(folder_.File("a.dcm")), "Leica Biosystems|GT450|20240506070809");
  dicom.more.clear();
  WriteDicom(folder_.File("a.dcm"), dicom);
  EXPECT_EQ(Of(folder_.File("a.dcm")), "||");
}

TEST_F(ScannerOfASlide, IsNotKnownOfOtherFiles) {
  std::ofstream(folder_.File("a.txt")) << "Manufacturer: none";
  EXPECT_EQ(Of(folder_.File("a.txt")), "||");
  EXPECT_FALSE(ScannerOf(Folders::OfThisUser(), folder_.File("none")).ok());
}

}  // namespace
}  // namespace patchbay::workers
