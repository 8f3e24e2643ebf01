#include <string>

#include <gtest/gtest.h>

#include "workers/annotations/annotation.h"

namespace patchbay::workers {
namespace {

constexpr char kSquare[] = "[[[0,0],[4,0],[4,4],[0,4],[0,0]]]";

std::string Feature(const std::string& geometry, const std::string& properties) {
  return R"({"type":"Feature","geometry":)" + geometry + R"(,"properties":)" + properties + "}";
}
std::string Polygon(const std::string& rings) {
  return R"({"type":"Polygon","coordinates":)" + rings + "}";
}

std::string NameOfOnly(const std::string& text) {
  const auto read = ReadAnnotations(text);
  return read.ok() && read->outlines.size() == 1 ? read->outlines[0].name
                                                 : std::string(MessageOf(read.status()));
}

TEST(GeoJson, NamesComeFromTheClassification) {
  const std::string square = Polygon(kSquare);
  for (const auto& [properties, name] : std::vector<std::pair<std::string, std::string>>{
           {R"({"classification":{"name":"Tumor","colorRGB":-1}})", "Tumor"},
           {R"({"classification":{"names":["Tumor","Positive"]}})", "Tumor: Positive"},
           {R"({"classification":"Stroma","label":"x"})", "Stroma"},
           {R"({"group":"Other","label":"Tumor"})", "Tumor"},
           {R"({"objectType":"annotation","name":"Annotation 7"})", "unclassified"},
           {"null", "unclassified"}}) {
    EXPECT_EQ(NameOfOnly(Feature(square, properties)), name);
    EXPECT_EQ(NameOfOnly("[" + Feature(square, properties) + "]"), name);
    EXPECT_EQ(NameOfOnly(R"({"type":"FeatureCollection","features":[)" +
                         Feature(square, properties) + "]}"),
              name);
  }
  EXPECT_EQ(NameOfOnly("\xEF\xBB\xBF " + square), "unclassified");
}

TEST(GeoJson, NamesComeFromThePropertyThatIsAskedFor) {
  const std::string feature = Feature(
      Polygon(kSquare),
      R"({"classification":{"name":"Tumor"},"name":"Lesion 3","grade":4,"score":2.0,"ratio":0.5,)"
      R"("metadata":{"reader":"anna","a.b":"dotted","deep":{"er":"x"}},"meta.b":"whole",)"
      R"("other":{"name":"inner"},"list":[1],"none":null})");
  const auto name = [&](const char* property) {
    const auto read = ReadAnnotations(feature, property);
    return read.ok() ? read->outlines.at(0).name : std::string(MessageOf(read.status()));
  };
  EXPECT_EQ(name(""), "Tumor");
  EXPECT_EQ(name("name"), "Lesion 3");
  EXPECT_EQ(name("classification"), "Tumor");
  EXPECT_EQ(name("grade"), "4");
  EXPECT_EQ(name("score"), "2");
  EXPECT_EQ(name("ratio"), "0.5");
  EXPECT_EQ(name("metadata.reader"), "anna");
  EXPECT_EQ(name("metadata.a.b"), "dotted");
  EXPECT_EQ(name("metadata.deep.er"), "x");
  EXPECT_EQ(name("meta.b"), "whole");
  EXPECT_EQ(name("other"), "inner");
  for (const char* none : {"list", "none", "Name", "metadata", "metadata.", ".", "grade.x"}) {
    EXPECT_EQ(name(none), "unclassified") << none;
  }
  EXPECT_EQ(MessageOf(ReadAnnotations("<Annotations></Annotations>", "name").status()),
            "XML has no property 'name': --class-from is for GeoJSON");
}

TEST(GeoJson, HolesPartsAndCollectionsAreKept) {
  const std::string holed = "[[[0,0],[9,0],[9,9],[0,9],[0,0]],[[2,2],[4,2],[4,4],[2,4],[2,2]]]";
  const auto read = ReadAnnotations(
      "[" +
      Feature(R"({"type":"MultiPolygon","coordinates":[)" + holed + "," + kSquare + "]}", "{}") +
      "," +
      Feature(R"({"type":"GeometryCollection","geometries":[)" + Polygon(holed) +
                  R"(,{"type":"Point","coordinates":[1,2]}]})",
              "{}") +
      "," + Feature(R"({"type":"LineString","coordinates":[[1,2],[3,4]]})", "{}") + "," +
      Feature("null", "{}") + "]");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->outlines.size(), 2u);
  EXPECT_EQ(read->without_area, 2);
  ASSERT_EQ(read->outlines[0].polygons.size(), 2u);
  EXPECT_EQ(read->outlines[0].polygons[0].rings.size(), 2u);
  EXPECT_EQ(read->outlines[0].polygons[0].rings[0].size(), 4u);  // the closing point is dropped
  EXPECT_EQ(read->outlines[1].where, "feature 1");
}

TEST(AsapXml, GroupsAreClassesAndOrderDecides) {
  const auto read = ReadAnnotations(R"(<?xml version="1.0"?><ASAP_Annotations><Annotations>
    <Annotation Name="a" Type="Polygon" PartOfGroup="Tumor"><Coordinates>
      <Coordinate Order="2" X="4.5" Y="4"/><Coordinate Order="0" X="0" Y="0"/><Coordinate Order="1" X="4.5" Y="0"/>
    </Coordinates></Annotation>
    <Annotation Name="b" Type="Dot" PartOfGroup="None"><Coordinates><Coordinate Order="0" X="1" Y="1"/></Coordinates></Annotation>
    </Annotations><AnnotationGroups/></ASAP_Annotations>)");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->outlines.size(), 1u);
  EXPECT_EQ(read->outlines[0].name, "Tumor");
  EXPECT_EQ(read->outlines[0].polygons[0].rings[0], (Ring{{0, 0}, {4.5, 0}, {4.5, 4}}));
  EXPECT_EQ(read->without_area, 1);
}

TEST(ImageScopeXml, NegativeRegionsAreCutOutOfTheirLayer) {
  const auto read = ReadAnnotations(R"(<Annotations MicronsPerPixel="0.25">
    <Annotation Id="1" Name=""><Attributes><Attribute Name="CaP" Value=""/></Attributes><Regions>
      <Region Id="1" Type="0" NegativeROA="0"><Vertices><Vertex X="0" Y="0"/><Vertex X="9" Y="0"/><Vertex X="9" Y="9"/></Vertices></Region>
      <Region Id="2" Type="0" NegativeROA="1"><Vertices><Vertex X="5" Y="1"/><Vertex X="8" Y="1"/><Vertex X="8" Y="3"/></Vertices></Region>
      <Region Id="3" Type="Rectangle" NegativeROA="0"><Vertices><V X="1" Y="40"/><V X="10" Y="1"/></Vertices></Region>
      <Region Id="4" Type="3" NegativeROA="0"><Vertices><Vertex X="0" Y="0"/><Vertex X="9" Y="0"/></Vertices></Region>
    </Regions></Annotation></Annotations>)");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->outlines.size(), 2u);
  EXPECT_EQ(read->outlines[0].name, "CaP");
  EXPECT_EQ(read->outlines[0].polygons[0].cutouts.size(), 1u);
  EXPECT_EQ(read->outlines[1].polygons[0].rings[0], (Ring{{1, 40}, {10, 40}, {10, 1}, {1, 1}}));
  EXPECT_EQ(read->without_area, 1);
  EXPECT_EQ(read->mpp, 0.25);
}

TEST(AnnotationFiles, WhatIsNoneIsRefusedAndSaysWhy) {
  const std::string deep(100'000, '[');
  for (
      const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
          {"", "empty"},
          {" \n", "empty"},
          {"hello", "neither GeoJSON"},
          {"{", "parse json"},
          {"{}", "no type"},
          {"[]", "no annotation"},
          {"[3]", "item 0"},
          {deep, "nested"},
          {R"({"type":"FeatureCollection"})", "features"},
          {R"({"type":"FeatureCollection","features":[]})", "no annotation"},
          {Feature(Polygon("[]"), "{}"), "feature 0: a polygon without rings"},
          {Feature(Polygon("[[[0,0],[1,1]]]"), "{}"), "a polygon ring of only 2 points"},
          {Feature(Polygon(R"([[["a",0],[1,1],[2,2]]])"), "{}"), "not [x, y]"},
          {Feature(Polygon("[[[1e300,0],[1,1],[2,2]]]"), "{}"), "not a pixel of a slide"},
          {Feature(R"({"type":"Circle"})", "{}"), "type 'Circle'"},
          {"<html></html>", "XML of <html>"},
          {"<Annotations><Annotation>", "not XML"},
          {"<Annotations/>", "no annotation"},
          {R"(<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>)", "XML of <a>"},
          {R"(<Annotations><Annotation><Regions><Region Type="0"><Vertices><Vertex X="1" Y=""/></Vertices></Region></Regions></Annotation></Annotations>)",
           "layer 0 region 0: a vertex without numbers"}}) {
    const auto read = ReadAnnotations(text);
    ASSERT_FALSE(read.ok()) << text.substr(0, 100);
    EXPECT_NE(std::string(MessageOf(read.status())).find(says), std::string::npos)
        << read.status() << "\nwanted: " << says;
  }
}

}  // namespace
}  // namespace patchbay::workers
