// Class maps of results in pixels of their image, and the probabilities within their outlines.
#include "workers/jobs/labels/class_map.h"

#include <cmath>
#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "runtime/core/strings.h"
#include "tests/runtime/format/zarr/zarr_fixture.h"
#include "workers/annotations/outline_tracer.h"
#include "workers/jobs/labels/mean_probability.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;
using zarr::Mix;

/// A folder of results with one image.
class ClassMaps : public testing::Test {
 protected:
  void SetUp() override {
    context_.rights = PathRights::All();
    context_.allowed = AllowedFoldersOf(context_.rights, context_.state_folder);
    context_.signals = &signals_;
    zarr::WriteText(folder_ / "r/results.json",
                    R"({"name":"abc","outputs":{"p":{"kind":"map","classes":["a","b","c"],)"
                    R"("class_map":"argmax"}}})");
    zarr::WriteText(folder_ / "r/000000-s/image.json", R"({"path":"/s","pixel_digest":"d1"})");
    image_.store = "/s";
    image_.pixel_digest = "d1";
  }
  std::string Image(const std::string& name) const {
    return std::filesystem::canonical(folder_.path()).string() + "/r/000000-s/" + name;
  }

  /// One chunk, not encoded.
  static void WriteArray(const std::string& path, const Json& shape, const std::string& dtype,
                         const std::string& values) {
    const Json array = {
        {"zarr_format", 3},
        {"node_type", "array"},
        {"shape", shape},
        {"data_type", dtype},
        {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", shape}}}}},
        {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
        {"fill_value", 0},
        {"codecs", {{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}}}};
    zarr::WriteText(path + "/zarr.json", DumpJson(array));
    std::string chunk = path + "/c";
    std::filesystem::remove_all(chunk);
    for (std::size_t i = 0; i < shape.size(); ++i) chunk += "/0";
    zarr::WriteText(chunk, values);
  }

  /// Levels of a class map, each half of the one before; `step` pixels of the image long.
  void WriteClasses(const std::vector<Extent>& levels, double step,
                    const std::vector<std::string>& values) const {
    Json datasets = Json::array();
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const double own = 0.5 * step * std::pow(2, i);  // um
      const auto name = StrCat(i);
      datasets.push_back(
          {{"path", name},
           {"coordinateTransformations",
            {{{"type", "scale"}, {"scale", {own, own}}},
             {{"type", "translation"}, {"translation", {(own - 0.5) / 2, (own - 0.5) / 2}}}}}});
      WriteArray(Image("p.classes.ome.zarr/") + name, {levels[i].y, levels[i].x}, "uint8",
                 values[i]);
    }
    const Json axis = {{"type", "space"}, {"unit", "micrometer"}};
    Json axes = {axis, axis};
    axes[0]["name"] = "y", axes[1]["name"] = "x";
    const Json root = {
        {"zarr_format", 3},
        {"node_type", "group"},
        {"attributes",
         {{"ome",
           {{"version", "0.5"}, {"multiscales", {{{"datasets", datasets}, {"axes", axes}}}}}}}}};
    zarr::WriteText(Image("p.classes.ome.zarr/zarr.json"), DumpJson(root));
  }
  static std::string Noise(std::int64_t count, std::uint64_t values) {
    std::string out(static_cast<std::size_t>(count), '\0');
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(Mix(i) % values);
    return out;
  }

  StatusOr<OpenedLabels> Open() {
    return OpenClassMap(context_, Image("p.classes.ome.zarr"), image_);
  }
  std::string Refusal() { return std::string(MessageOf(Open().status())); }

  const zarr::TempFolder folder_;
  LabelledImage image_;
  TaskSignals signals_;
  TaskContext context_{Folders::OfThisUser(), ops::Table()};
};

TEST_F(ClassMaps, APixelIsThatOfTheMapThatItsCentreLiesIn) {
  image_.levels = {Flat(61, 83)};
  // Pixels of the map: n / d pixels of the image long.
  for (const auto& [n, d] : {std::pair{1, 1}, {2, 1}, {3, 1}, {5, 2}, {7, 3}, {64, 1}, {2, 3}}) {
    const Extent size = Flat((61 * d + n - 1) / n, (83 * d + n - 1) / n);
    const std::string values = Noise(size.Pixels(), 3);
    WriteClasses({size}, static_cast<double>(n) / d, {values});
    const auto labels = Open();
    ASSERT_TRUE(labels.ok()) << labels.status();
    EXPECT_EQ(labels->set.attributes["results"], Json({{"name", "abc"}, {"output", "p"}}));
    auto reader = LabelRowReader::Open(context_.allowed, *labels, 0, nullptr);
    ASSERT_TRUE(reader.ok()) << reader.status();
    for (std::int64_t y = 0; y < 61; y += 20) {
      const std::int64_t height = std::min<std::int64_t>(20, 61 - y);
      const auto rows = reader->Read(y, height);
      ASSERT_TRUE(rows.ok()) << rows.status();
      for (std::int64_t i = 0; i < height * 83; ++i) {
        const std::int64_t row = (2 * (y + i / 83) + 1) * d / (2 * n);
        const std::int64_t column = (2 * (i % 83) + 1) * d / (2 * n);
        ASSERT_EQ((*rows)[i], static_cast<std::uint8_t>(
                                  values[static_cast<std::size_t>(row * size.x + column)]))
            << n << "/" << d << " at " << y + i / 83 << ", " << i % 83;
      }
    }
  }
}

TEST_F(ClassMaps, ALevelOfTheImageIsReadFromTheMapsLevelOfThatSize) {
  image_.levels = {Flat(64, 96), Flat(32, 48), Flat(16, 24), Flat(8, 12)};
  const std::vector<Extent> levels = {Flat(32, 48), Flat(16, 24)};
  WriteClasses(levels, 2, {std::string(32 * 48, '\1'), Noise(16 * 24, 3)});
  const auto labels = Open();
  ASSERT_TRUE(labels.ok()) << labels.status();
  const std::string coarse = Noise(16 * 24, 3);
  for (const auto& [level, value] :
       std::vector<std::pair<int, std::function<char(std::int64_t, std::int64_t)>>>{
           {1, [](auto, auto) { return '\1'; }},
           {2, [&](auto y, auto x) { return coarse[static_cast<std::size_t>(y * 24 + x)]; }},
           {3, [&](auto y, auto x) {
              return coarse[static_cast<std::size_t>((2 * y + 1) * 24 + 2 * x + 1)];
            }}}) {
    auto reader = LabelRowReader::Open(context_.allowed, *labels, level, nullptr);
    const Extent& size = image_.levels[static_cast<std::size_t>(level)];
    const auto rows = reader->Read(0, size.y);
    ASSERT_TRUE(rows.ok()) << rows.status();
    for (std::int64_t i = 0; i < size.Pixels(); ++i) {
      ASSERT_EQ((*rows)[i], static_cast<std::uint8_t>(value(i / size.x, i % size.x)))
          << level << " " << i;
    }
  }
}

TEST_F(ClassMaps, WhatIsNoMapOfTheImageIsRefused) {
  image_.levels = {Flat(40, 60)};
  const auto write = [&](double step) {
    WriteClasses({Flat(20, 30)}, step, {std::string(600, '\0')});
  };
  write(2);
  EXPECT_EQ(Refusal(), "");
  for (const double step : {1.0, 3.0, 0.01, 1e9}) {
    write(step);
    EXPECT_THAT(Refusal(), HasSubstr("they are of another image")) << step;
  }
  write(2);
  const std::string array = Image("p.classes.ome.zarr/0");
  for (const auto& [shape, dtype, says] : std::vector<std::tuple<Json, std::string, std::string>>{
           {{20, 30}, "int8", "int8 a pixel"},
           {{20, 30}, "float32", "float32 a pixel"},
           {{20, 31, 1}, "uint8", "3 axes"},
           {{20, 1 << 24}, "uint8", "another image"},
           {{20, std::int64_t{1} << 39}, "uint8", "a chunk of more than"},
           {{20, std::int64_t{1} << 60}, "uint8", "shape"}}) {
    WriteArray(array, shape, dtype, "");
    EXPECT_THAT(Refusal(), HasSubstr(says));
  }
  write(2);
  image_.levels = {{2, 40, 60}};
  image_.is_volume = true;
  EXPECT_THAT(Refusal(), HasSubstr("its image is a volume"));
  image_.is_volume = false;
  image_.levels = {Flat(40, 60)};
  image_.pixel_digest = "d2";
  EXPECT_THAT(Refusal(), HasSubstr("/s: its pixels are not those that the map was made from"));
  zarr::WriteText(Image("image.json"), R"({"path":"/s","pixel_digest":null})");
  EXPECT_THAT(Refusal(), HasSubstr("another file than a store"));
}

TEST_F(ClassMaps, OfThresholdsHaveNoneOfTheClassesFirst) {
  image_.levels = {Flat(4, 4)};
  WriteClasses({Flat(4, 4)}, 1, {std::string(16, '\1')});
  for (const auto& [rule, first] : {std::pair{R"("argmax")", 0}, {"[0.5,0.5]", 1}}) {
    zarr::WriteText(folder_ / "r/results.json",
                    StrCat(R"({"name":"abc","outputs":{"p":{"kind":"map","classes":["a","b"],)",
                           R"("class_map":)", rule, "}}}"));
    const auto labels = Open();
    ASSERT_TRUE(labels.ok()) << labels.status();
    EXPECT_EQ(labels->map->first_class, first) << "value of class a by " << rule;
  }
}

TEST_F(ClassMaps, LinksOutOfResultsAreRefused) {
  image_.levels = {Flat(4, 4)};
  WriteClasses({Flat(4, 4)}, 1, {std::string(16, '\1')});
  zarr::WriteText(folder_ / "elsewhere", std::string(16, '\2'));
  const std::string chunk = Image("p.classes.ome.zarr/0/c/0/0");
  std::filesystem::remove(chunk);
  std::filesystem::create_symlink(folder_ / "elsewhere", chunk);
  EXPECT_THAT(Refusal(), HasSubstr("0/c/0/0: no file: `patchbay map` makes no links"));
}

/// A class map with its probabilities, and its outlines.
class Probabilities : public ClassMaps {
 protected:
  static constexpr std::int64_t kHeight = 37, kWidth = 51;

  void SetUp() override {
    ClassMaps::SetUp();
    image_.levels = {Flat(2 * kHeight - 1, 2 * kWidth)};
    for (std::int64_t i = 0; i < kHeight * kWidth; ++i) {
      const std::int64_t y = i / kWidth, x = i % kWidth;
      const bool is_bare = Mix(static_cast<std::uint64_t>(i)) % 11 == 0;
      classes_ += static_cast<char>(is_bare ? 255 : (y / 7 + x / 9 + (x * y) % 5 / 4) % 3);
      for (std::string& channel : channels_) {
        const auto at = static_cast<std::uint64_t>(i + 7 * (&channel - channels_));
        channel += static_cast<char>(is_bare ? 255 : Mix(at) % 255);
      }
    }
    WriteClasses({Flat(kHeight, kWidth)}, 2, {classes_});
  }
  void WriteBytes() const {
    WriteArray(Image("p.ome.zarr/0"), {3, kHeight, kWidth}, "uint8",
               channels_[0] + channels_[1] + channels_[2]);
  }

  std::vector<TracedPolygon> Trace(const OpenedLabels& labels) {
    const Extent size = image_.levels[0];
    auto reader = LabelRowReader::Open(context_.allowed, labels, 0, nullptr);
    const auto rows = reader->Read(0, size.y);
    OutlineTracer tracer(size.x, 255);
    for (std::int64_t y = 0; y < size.y; ++y) EXPECT_TRUE(tracer.AddRow(*rows + y * size.x).ok());
    return tracer.Finish();
  }
  /// Pixel by pixel, by the rule of even and odd.
  double MeanWithin(const TracedPolygon& polygon) const {
    double total = 0, count = 0;
    const Extent size = image_.levels[0];
    for (std::int64_t i = 0; i < size.Pixels(); ++i) {
      const std::int64_t y = i / size.x, x = i % size.x;
      bool inside = false;
      for (const Ring& ring : polygon.rings) {
        inside ^= Encloses(ring, {static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5});
      }
      const auto at = static_cast<std::size_t>(y / 2 * kWidth + x / 2);
      const auto value = static_cast<std::uint8_t>(channels_[polygon.value][at]);
      if (!inside || value == 255) continue;
      total += value / 254.0;
      ++count;
    }
    return total / count;
  }

  std::string classes_, channels_[3];
};

TEST_F(Probabilities, OfAnOutlineAreThoseOfItsPixels) {
  WriteBytes();
  const auto labels = Open();
  ASSERT_TRUE(labels.ok()) << labels.status();
  std::vector<TracedPolygon> polygons = Trace(*labels);
  ASSERT_GT(polygons.size(), 30u);
  polygons[0].rings.resize(1);  // --min-area took the holes, whose pixels no patch covered
  const auto means = MeanProbabilities(context_, *labels, polygons);
  ASSERT_TRUE(means.ok()) << means.status();
  for (std::size_t i = 0; i < polygons.size(); ++i) {
    ASSERT_TRUE((*means)[i].has_value()) << i;
    ASSERT_NEAR(*(*means)[i], MeanWithin(polygons[i]), 1e-12) << i;
  }
}

TEST_F(Probabilities, OfHalvesAreTheSameNumbers) {
  std::string halves;
  for (std::string& channel : channels_) {
    for (char& one : channel) {
      const auto value = static_cast<std::uint8_t>(one);
      const auto bits = static_cast<std::uint16_t>(value == 255 ? 0x7e00 : 0x3800 | value << 2);
      halves += {static_cast<char>(bits & 255), static_cast<char>(bits >> 8)};  // 0.5 to 1
    }
  }
  WriteArray(Image("p.ome.zarr/0"), {3, kHeight, kWidth}, "float16", halves);
  const auto labels = Open();
  const auto means = MeanProbabilities(context_, *labels, Trace(*labels));
  ASSERT_TRUE(means.ok()) << means.status();
  const std::vector<TracedPolygon> polygons = Trace(*labels);
  for (std::size_t i = 0; i < polygons.size(); ++i) {
    const double bytes = MeanWithin(polygons[i]) * 254;  // 0.5 + value * 4 / 1024 / 2
    ASSERT_NEAR(*(*means)[i], 0.5 + bytes / 512, 1e-12) << i;
  }
}

TEST_F(Probabilities, WithoutTheMapThereAreNoneAndAnotherMapIsRefused) {
  const auto labels = Open();
  const std::vector<TracedPolygon> polygons = Trace(*labels);
  const auto none = MeanProbabilities(context_, *labels, polygons);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE((*none)[0].has_value());
  WriteArray(Image("p.ome.zarr/0"), {3, kHeight, kWidth + 1}, "uint8", "");
  zarr::WriteText(Image("p.ome.zarr/zarr.json"), "{}");
  const auto refused = MeanProbabilities(context_, *labels, polygons);
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("not the map of the class map beside it"));
}

}  // namespace
}  // namespace patchbay::workers
