// The attributes of OME-XML, well-formed and not.
#include <string>

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "workers/sources/scan_description.h"

namespace patchbay::workers {
namespace {

std::string Ome(const std::string& pixels) {
  return StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?><!-- a comment -->",
                "<OME UUID=\"urn:uuid:0\"><Image ID=\"Image:0\"><Pixels ", pixels,
                "><Channel/></Pixels></Image><Image><Pixels PhysicalSizeX=\"9\" ",
                "PhysicalSizeY=\"9\"/></Image></OME>");
}

TEST(Ome, EveryLengthUnitBecomesMicrometres) {
  const std::pair<const char*, const char*> units[] = {
      {"\u00B5m", "0.5"},
      {"\u03BCm", "0.5"},
      {"&#181;m", "0.5"},
      {"um", "0.5"},
      {"nm", "500"},
      {"mm", "0.0005"},
      {"cm", "0.00005"},
      {"m", "5e-7"},
      {"\u00C5", "5000"},
      {"pm", "5e5"},
      {"in", "1.968503937007874e-5"},
  };
  for (const auto& [unit, size] : units) {
    const OmeDescription said = ParseOmeDescription(
        Ome(StrCat("PhysicalSizeXUnit='", unit, "' PhysicalSizeX = \"", size, "\" PhysicalSizeY=\"",
                   size, "\" PhysicalSizeYUnit=\"", unit, "\"")));
    ASSERT_TRUE(said.mpp_x && said.mpp_y) << unit;
    EXPECT_NEAR(*said.mpp_x, 0.5, 1e-12) << unit;
    EXPECT_NEAR(*said.mpp_y, 0.5, 1e-12) << unit;
  }
}

TEST(Ome, WithoutAUnitItIsMicrometres) {
  const OmeDescription said = ParseOmeDescription(Ome("PhysicalSizeX=\"0.25\""));
  EXPECT_EQ(said.mpp_x, 0.25);
  EXPECT_EQ(said.mpp_y, std::nullopt);
}

TEST(Ome, WhatIsNoLengthIsAbsent) {
  for (const char* pixels :
       {"", "PhysicalSizeX=\"\"", "PhysicalSizeX=\"-1\"", "PhysicalSizeX=\"nan\"",
        "PhysicalSizeX=\"inf\"", "PhysicalSizeX=\"0\"", "PhysicalSizeX=\"1px\"", "PhysicalSizeX=1",
        "PhysicalSizeX=\"1", "PhysicalSizeX", "XPhysicalSizeX=\"1\"", "PhysicalSizeX=\"1e-300\"",
        "PhysicalSizeX=\"9e99\"", "PhysicalSizeX=\"50.1\"", "PhysicalSizeX=\"0.0009\"",
        "PhysicalSizeX=\"1\" PhysicalSizeXUnit=\"cm\"",
        "PhysicalSizeX=\"1\" PhysicalSizeXUnit=\"pixel\"",
        "PhysicalSizeX=\"1\" PhysicalSizeXUnit=\"reference frame\""}) {
    EXPECT_EQ(ParseOmeDescription(Ome(pixels)).mpp_x, std::nullopt) << pixels;
  }
}

TEST(Ome, OtherDescriptionsAreNotOme) {
  EXPECT_TRUE(IsOmeDescription(Ome("")));
  EXPECT_TRUE(IsOmeDescription("<ome:OME xmlns:ome=\"x\">"));
  for (const char* text :
       {"", "<", "OME", "Aperio Image|MPP = 0.5", "<OMERO>", "{\"shape\": [1]}"}) {
    EXPECT_FALSE(IsOmeDescription(text)) << text;
  }
}

}  // namespace
}  // namespace patchbay::workers
