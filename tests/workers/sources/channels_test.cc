// TIFFs of 16 bits and of many channels: tifffile's, and crafted ones whose OME-XML lies.
#include <cstring>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/sources/crafted_tiff.h"
#include "tests/workers/sources/python_oracle.h"
#include "workers/sources/ome_planes.h"

namespace patchbay::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

/// The whole level as interleaved values in little endian.
StatusOr<std::vector<char>> ReadLevel(const ImageSource& image, int level, const Box& box) {
  const ImageLayout& layout = image.layout();
  std::vector<char> bytes(static_cast<std::size_t>(box.Pixels() * layout.channels) *
                          SizeOf(layout.dtype));
  EncodedPatch encoded;
  PB_RETURN_IF_ERROR(image.Fetch(level, box, encoded));
  const TensorView view =
      ContiguousView<3>(reinterpret_cast<std::byte*>(bytes.data()), layout.dtype,
                        {box.height, box.width, std::int64_t{layout.channels}});
  PB_RETURN_IF_ERROR(image.Decode(encoded, view, 3, *image.MakeScratch()));
  return bytes;
}

struct Written {
  const char* name;
  DType dtype;
  int levels;
  Names names;
};

TEST(Channels, OfTifffileAreReadPixelForPixel) {
  if (!HasPackages("numpy, tifffile, imagecodecs")) {
    GTEST_SKIP() << "no Python with tifffile and imagecodecs at PATCHBAY_PYTHON";
  }
  const TemporaryFolder folder;
  ASSERT_TRUE(RunScript("ome_writer.py", folder.path()));
  const Names panel = {"DAPI", "CD8 & CD4", "CD3", "PanCK"};
  const Written files[] = {
      {"ome_lzw", DType::kUint16, 3, panel},
      {"ome_zstd_big_endian", DType::kUint16, 3, panel},
      {"ome_deflate_bigtiff", DType::kUint16, 3, panel},
      {"ome_strips", DType::kUint16, 3, {panel[0], panel[1]}},
      {"ome_bytes", DType::kUint8, 3, {panel[0], panel[1], panel[2]}},
      {"planar", DType::kUint16, 1, {"channel 0", "channel 1", "channel 2", "channel 3"}},
      {"interleaved",
       DType::kUint16,
       1,
       {"channel 0", "channel 1", "channel 2", "channel 3", "channel 4"}},
      {"rgb_big_endian", DType::kUint16, 1, {}},
  };
  for (const Written& file : files) {
    SCOPED_TRACE(file.name);
    const auto image = OpenImage(Folders::OfThisUser(), folder.File(StrCat(file.name, ".tif")));
    ASSERT_TRUE(image.ok()) << image.status();
    const ImageLayout& layout = (*image)->layout();
    EXPECT_EQ(layout.dtype, file.dtype);
    EXPECT_EQ(layout.channel_names, file.names);
    EXPECT_FALSE(IsRgb(layout));
    ASSERT_EQ(std::ssize(layout.levels), file.levels);
    for (int level = 0; level < file.levels; ++level) {
      std::ifstream raw(folder.File(StrCat(file.name, ".", level, ".raw")), std::ios::binary);
      const std::vector<char> expected{std::istreambuf_iterator<char>(raw), {}};
      const Extent& size = layout.levels[static_cast<std::size_t>(level)].size;
      const auto pixels = ReadLevel(**image, level, Box2D(0, 0, size.y, size.x));
      ASSERT_TRUE(pixels.ok()) << pixels.status();
      EXPECT_TRUE(*pixels == expected) << "level " << level;
    }
  }
}

/// Planes of one sample and 16 bits, whose pieces hold FlatValue in both bytes of every sample.
CraftedImage Plane(const std::string& description = "", std::uint32_t side = 32) {
  CraftedImage image;
  image.width = image.height = side;
  image.samples = 1;
  image.photometric = 1;
  image.bits = 16;
  image.description = description;
  for (std::size_t n = 0; n < PieceCount(image); ++n) {
    image.pieces.emplace_back(std::size_t{image.tile} * image.tile * 2,
                              static_cast<char>(FlatValue(n)));
  }
  return image;
}

std::string OmeText(const std::string& pixels, const std::string& inside) {
  return StrCat("<?xml version='1.0'?><OME UUID='urn:uuid:1'><Image><Pixels ", pixels, ">", inside,
                "</Pixels></Image></OME>");
}

/// The images in one file; `description` is the first one's.
StatusOr<std::unique_ptr<ImageSource>> OpenOme(const std::string& description,
                                               std::vector<CraftedImage> images) {
  static const TemporaryFolder folder;
  images.front().description = description;
  PB_RETURN_IF_ERROR(WriteTiff(folder.File("a.tif"), images));
  return OpenImage(Folders::OfThisUser(), folder.File("a.tif"));
}

TEST(Channels, OutsideTheImageAndWherePiecesAreAbsentIsTheFill) {
  CraftedImage second = Plane();
  second.pieces[0].clear();
  const auto image = OpenOme(OmeText("SizeC='2'", ""), {Plane(), second});
  ASSERT_TRUE(image.ok()) << image.status();
  const auto pixels = ReadLevel(**image, 0, Box2D(-1, 0, 2, 1));
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  std::uint16_t values[4];
  std::memcpy(values, pixels->data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(3, 3, 257 * FlatValue(0), 3));
  std::vector<char> room(4);
  const TensorView view =
      ContiguousView<3>(reinterpret_cast<std::byte*>(room.data()), DType::kUint16, {1, 1, 2});
  EncodedPatch encoded;
  ASSERT_TRUE((*image)->Fetch(0, Box2D(0, 0, 1, 1), encoded).ok());
  EXPECT_THAT((*image)->Decode(encoded, view, 65536, *(*image)->MakeScratch()).message(),
              HasSubstr("fill 65536 is not a value of uint16"));
}

TEST(Channels, LieWhereTiffDataSays) {
  CraftedImage marked = Plane();
  marked.pieces[0] = std::string(512, '\x01');
  const auto image = OpenOme(OmeText("SizeC='3'",
                                     "<Channel Name='a'/><Channel Name='b'/><Channel/>"
                                     "<TiffData IFD='0'/><TiffData FirstC='2' IFD='1'/>"
                                     "<!-- <TiffData FirstC='1' IFD='0'/> -->"
                                     "<TiffData FirstC='1' IFD='2' PlaneCount='1'><UUID "
                                     "FileName='x.tif'>urn:uuid:1</UUID></TiffData>"),
                             {Plane(), marked, Plane()});
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT((*image)->layout().channel_names, ElementsAre("a", "b", "channel 2"));
  const auto pixels = ReadLevel(**image, 0, Box2D(0, 0, 1, 1));
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  EXPECT_EQ((*pixels)[0], static_cast<char>(FlatValue(0)));
  EXPECT_EQ((*pixels)[4], '\x01');
}

TEST(Channels, ThatContradictTheFileAreRefusedByName) {
  const CraftedImage one = Plane();
  CraftedImage lzw = Plane(), bytes = Plane(), wide = Plane("", 48);
  lzw.compression = 5;
  bytes.bits = 8;
  const struct {
    const char *pixels, *inside;
    std::vector<CraftedImage> images;
    const char* cause;
  } cases[] = {
      {"SizeC='3'", "", {one, one}, "SizeC 3 (OME-XML), and the plane of channel 2 is not in the"},
      {"SizeC='1'",
       "",
       {one, one},
       "several images of 32 x 32 in one file (channels or planes, not"
       " a pyramid): 2, and OME-XML states 1"},
      {"SizeC='0'", "", {one, one}, "SizeC 0 (OME-XML): 1 to 64"},
      {"SizeC='65'", "", {one, one}, "SizeC 65 (OME-XML): 1 to 64"},
      {"SizeC='99999999999999999999'", "", {one, one}, "and OME-XML states 1"},
      {"SizeC='2' SizeZ='2'", "", {one, one}, "2 focal planes and 1 time points"},
      {"SizeC='2'", "<TiffData IFD='0'/>", {one, one}, "the plane of channel 1 is not in the"},
      {"SizeC='2'", "<TiffData IFD='-3'/>", {one, one}, "a TiffData of negative numbers"},
      {"SizeC='2'",
       "<TiffData IFD='0'/><TiffData IFD='0' FirstC='1'/>",
       {one, one},
       "two channels in directory 0"},
      {"SizeC='2'",
       "<TiffData IFD='0'><UUID FileName='b.tif'>urn:uuid:2</UUID></TiffData>",
       {one, one},
       "planes in other files (OME-XML)"},
      {"SizeC='2'", "", {one, wide}, "channel 1 has 48 x 48 pixels, channel 0 has 32 x 32"},
      {"SizeC='2'", "", {one, lzw}, "channel 1 has other compression than channel 0"},
      {"SizeC='2'", "", {one, bytes}, "channel 1 has other samples than channel 0"},
  };
  for (const auto& wrong : cases) {
    const auto image = OpenOme(OmeText(wrong.pixels, wrong.inside), wrong.images);
    ASSERT_FALSE(image.ok()) << wrong.cause;
    EXPECT_THAT(std::string(image.status().message()), HasSubstr(wrong.cause));
  }
  EXPECT_THAT(std::string(OpenOme("", {one, one}).status().message()),
              HasSubstr("only OME-XML says which"));
}

TEST(Channels, NamesAreMadeUniqueAndFitToPrint) {
  const auto names = [](const Names& stated) { return UniqueChannelNames(stated, 3); };
  EXPECT_THAT(names({"a", "a", "a (2)"}), ElementsAre("a", "a (2)", "a (2) (2)"));
  EXPECT_THAT(names({"", "channel 0", "x\ny"}),
              ElementsAre("channel 0", "channel 0 (2)", "channel 2"));
  EXPECT_THAT(names({std::string(64, 'a'), std::string(65, 'a'), std::string(64, 'a')}),
              ElementsAre(std::string(64, 'a'), "channel 1", "channel 2 (2)"));
  EXPECT_THAT(names({"\xFF", "\u202e", "\u00B5"}), ElementsAre("channel 0", "channel 1", "\u00B5"));
}

TEST(Channels, NamesAreReadAsXmlWritesThem) {
  const auto planes =
      ParseOmePlanes(OmeText("SizeC='4'",
                             "<Channel ID='a>b' Name=' &lt;CD8&gt; &amp; &#x3b1;&#945; &no; & '/>"
                             "<Channel SamplesPerPixel='3'/>"));
  ASSERT_TRUE(planes);
  ASSERT_EQ(planes->channels.size(), 2u);
  EXPECT_EQ(planes->channels[0].name, "<CD8> & \u03b1\u03b1 &no; &");
  EXPECT_EQ(planes->channels[1].samples, 3);
  EXPECT_FALSE(ParseOmePlanes("<OME><Image/></OME>"));
  EXPECT_FALSE(ParseOmePlanes(StrCat("<OME><Pixels Name='", std::string(100, '&'))));
}

}  // namespace
}  // namespace patchbay::workers
