// Tables of places: accepted forms, refusals, and their use in a plan.
#include "runtime/model/plan/coordinates.h"

#include <algorithm>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "runtime/core/base64.h"
#include "runtime/core/random.h"
#include "runtime/core/strings.h"
#include "runtime/model/plan/plan.h"
#include "tests/contract/known_ops.h"

namespace patchbay::plan {
namespace {

std::string CoordinatesError(std::string_view text) {
  const auto read = ParseCoordinates(text, "c.csv");
  return read.ok() ? "" : std::string(MessageOf(read.status()));
}

TEST(Coordinates, ReadsTheTablesOfOtherPrograms) {
  const std::vector<PlanePoint> expected = {{20, 10}, {0, 512}};
  for (const std::string text :
       {"slide_id,x,y\nA,10,20\nA,512,0\n",
        "\xEF\xBB\xBFslide_id;x;y\r\nA;10.0;20\r\n\r\nA;512;0.00",
        "x\ty\tlevel\tslide_id\tsize\n10\t20\t0\tA\t256\n512\t0\t0\tA\t256\n",
        "sep=;\nslide_id;x;y\n\"A\"; 10 ;20\nA;512;0\n;;\n"}) {
    SCOPED_TRACE(text);
    const auto read = ParseCoordinates(text, "c.csv");
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->slides.size(), 1u);
    EXPECT_EQ(read->slides.at("A").places, expected);
    EXPECT_EQ(read->order, (std::vector<ListedRun>{{0, 2}}));
    EXPECT_EQ(read->ignored.size(), text.find("level") == std::string::npos ? 0u : 2u);
  }
}

TEST(Coordinates, KeepTheOrderOfSlidesThatAlternate) {
  const auto read =
      ParseCoordinates("slide_id,x,y\nB,1,0\nB,2,0\nA,3,0\nB,4,0\nC,5,0\nA,6,0\n", "c.csv");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->slides.at("B").number, 0u);
  EXPECT_EQ(read->slides.at("A").number, 1u);
  EXPECT_EQ(read->order, (std::vector<ListedRun>{{0, 2}, {1, 1}, {0, 1}, {2, 1}, {1, 1}}));
}

TEST(Coordinates, HaveAClassEachWhereAColumnIsNamed) {
  const std::string text = "slide_id,x,y,grade,level\nA,1,2,3,0\nB,1,2,0.0,0\nA,5,6,,0\nA,7,8\n";
  const auto read = ParseCoordinates(text, "c.csv", "grade");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->slides.at("A").labels.values, (std::vector<std::int32_t>{3, 255, 255}));
  EXPECT_EQ(read->slides.at("B").labels.values, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(read->ignored, std::vector<std::string>{"level"});
  EXPECT_TRUE(ParseCoordinates(text, "c.csv")->slides.at("A").labels.values.empty());
  const auto error = [](const std::string& table, const char* column) {
    return std::string(MessageOf(ParseCoordinates(table, "c.csv", column).status()));
  };
  EXPECT_EQ(error("slide_id,x,y,grad\nA,1,2,3\n", "grade"),
            "c.csv:1: no column 'grade' (is it 'grad'?); the first line names the columns");
  for (const char* bad : {"-1", "tumour", "1.5", "2147483648"}) {
    EXPECT_EQ(
        error(StrCat("slide_id,x,y,grade\nA,1,2,", bad, "\n"), "grade"),
        StrCat("c.csv:2: column 'grade': '", bad, "' is not a whole number from 0 to 2147483647"));
  }
}

TEST(Coordinates, RefusalsNameLineAndColumn) {
  EXPECT_EQ(CoordinatesError(""), "c.csv:1: the table is empty");
  EXPECT_EQ(CoordinatesError("slide_id,x,y\n"), "c.csv:1: the table has no rows");
  EXPECT_EQ(CoordinatesError("slide,x,y\nA,1,2\n"),
            "c.csv:1: no column 'slide_id'; the first line names the columns");
  EXPECT_EQ(CoordinatesError("slide_id,x,y,x\nA,1,2,3\n"), "c.csv:1: two columns are named 'x'");
  EXPECT_EQ(CoordinatesError("slide_id,x,y\nA,1,2\n,1,2\n"),
            "c.csv:3: column 'slide_id': it is empty");
  for (const char* bad : {"-1", "1.5", "x", "", "2147483648", "1e3", "1.", "nan", "0x10"}) {
    EXPECT_EQ(CoordinatesError(StrCat("slide_id,x,y\n\nA,1,", bad, "\n")),
              StrCat("c.csv:3: column 'y': '", bad,
                     "' is not a whole number of pixels from 0 to 2147483647"));
  }
  EXPECT_EQ(CoordinatesError("slide_id,x,y\nA,1\n"),
            "c.csv:2: column 'y': '' is not a whole number of pixels from 0 to 2147483647");
  EXPECT_EQ(CoordinatesError("slide_id,x,y\nM\xFCller,1,2\n"),
            "c.csv:2: the text is not UTF-8; save it as CSV UTF-8");
}

TEST(ListedPositions, ComeBackFromTheirText) {
  std::vector<PlanePoint> grid, scattered = {{2147483647, 0}, {0, 2147483647}, {5, 5}, {5, 5}};
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 100; ++x) grid.push_back({y * 512 + 7, x * 512 + 3});
  }
  for (const auto& positions : {std::vector<PlanePoint>(), {{3, 4}}, grid, scattered}) {
    const auto read = DecodePositions(EncodePositions(positions));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, positions);
  }
  EXPECT_LT(EncodePositions(grid).size(), 3 * grid.size());
}

TEST(ListedPositions, ClassesComeBackFromTheirText) {
  for (const auto& values : {std::vector<std::int32_t>(), {0}, {255, 0, 7, 2147483647, 7}}) {
    const auto read = DecodePlaceLabels(EncodePlaceLabels({values}));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->values, values);
  }
  EXPECT_FALSE(DecodePlaceLabels("?").ok());
  EXPECT_FALSE(DecodePlaceLabels(Base64Of("\x80")).ok());
  EXPECT_FALSE(DecodePlaceLabels(Base64Of("\xFF\xFF\xFF\xFF\x0F")).ok());
}

TEST(ListedPositions, TextsThatAreNoneAreRefused) {
  const std::string good = EncodePositions(std::vector<PlanePoint>{{1, 2}, {3, 4}, {9, 9}});
  const std::string bytes = FromBase64(good).value();
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(DecodePositions(Base64Of(bytes.substr(0, cut))).ok()) << cut;
  }
  EXPECT_FALSE(DecodePositions(Base64Of(bytes + '\0')).ok());
  EXPECT_FALSE(DecodePositions("?").ok());
  EXPECT_FALSE(DecodePositions(Base64Of("\xFF\xFF\xFF\xFF\x0F")).ok());  // a count that lies
}

class ListedPlan : public testing::Test {
 protected:
  static RunConfig Config(const std::string& sampling) {
    const auto config =
        ParseRunConfig(StrCat("dataset: t.csv\nnumerics: cpu\nseed: 3\npatch: {size: [64, 64]}\n"
                              "batch: {global_size: 4}\nsampling: {positions: my/c.csv",
                              sampling, "}\n"),
                       "run.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  }
  static std::vector<PlannedImage> Images() {
    PlannedImage image;
    image.kind = "zarr";
    image.size = {1, 1000, 900};
    std::vector<PlannedImage> images(3, image);
    for (std::size_t i = 0; i < images.size(); ++i)
      images[i].digest.bytes[0] = static_cast<std::uint8_t>(i + 1);
    images[0].listed = {{0, 0}, {999, 899}, {10, 20}};
    images[2].listed = {{5, 6}};
    return images;
  }
};

TEST_F(ListedPlan, GivesEachPatchTheClassOfItsPlace) {
  const auto config = [](const std::string& more) {
    RunConfig made = Config(more);
    made.labels.positions_column = "grade";
    return made;
  };
  std::vector<PlannedImage> images = Images();
  images[0].listed_labels.values = {7, 8, 9};
  images[2].listed_labels.values = {255};
  for (const char* order : {", order: sequential", "", ", max_per_slide: 2"}) {
    const auto made = Plan::Build(config(order), images);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->layout().arrays.at(1).name, "label");
    const auto again = ParsePlan(made->Text());
    ASSERT_TRUE(again.ok()) << again.status();
    for (std::uint64_t i = 0; i < made->patches_per_epoch(); ++i) {
      const auto spec = again->DeriveSpec(1, i);
      ASSERT_TRUE(spec.ok()) << spec.status();
      const std::map<std::int64_t, std::int64_t> by_y = {{0, 7}, {999, 8}, {10, 9}, {5, 255}};
      EXPECT_EQ(spec->label, by_y.at(spec->box.y));
    }
  }
  EXPECT_EQ(Plan::Build(Config(""), images)->digest(), Plan::Build(Config(""), Images())->digest());
  images[0].listed_labels.values.pop_back();
  EXPECT_NE(MessageOf(Plan::Build(config(""), images).status())
                .find("key 'labels.label.positions_column': not one label for each position"),
            std::string::npos);
}

TEST_F(ListedPlan, HasEachPlaceOnceInOrder) {
  const auto made = Plan::Build(Config(", order: sequential"), Images());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->patches_per_epoch(), 4u);
  const std::vector<std::pair<std::uint32_t, PlanePoint>> expected = {
      {0, {0, 0}}, {0, {999, 899}}, {0, {10, 20}}, {2, {5, 6}}};
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    const auto spec = made->DeriveSpec(1, i);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->image, expected[i].first);
    EXPECT_EQ(spec->box.y, expected[i].second.y);
    EXPECT_EQ(spec->box.x, expected[i].second.x);
    EXPECT_EQ(spec->box.height, 64);
  }
  const auto parsed = ParsePlan(made->Text());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->digest(), made->digest());
  EXPECT_EQ(made->Text().find("my/c.csv"), std::string::npos);
}

/// Image and y of every patch of an epoch.
std::vector<std::pair<std::uint32_t, std::int64_t>> EpochOf(const Plan& plan, std::uint32_t epoch) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> patches;
  for (std::uint64_t i = 0; i < plan.patches_per_epoch(); ++i) {
    const auto spec = plan.DeriveSpec(epoch, i);
    EXPECT_TRUE(spec.ok()) << spec.status();
    patches.emplace_back(spec->image, spec->box.y);
  }
  return patches;
}

TEST_F(ListedPlan, SequentialEpochsGoByTheTableWhereImagesAlternate) {
  const auto made = Plan::Build(Config(", order: sequential"), Images(), {{0, 1}, {2, 1}, {0, 2}});
  ASSERT_TRUE(made.ok()) << made.status();
  const std::vector<std::pair<std::uint32_t, std::int64_t>> expected = {
      {0, 0}, {2, 5}, {0, 999}, {0, 10}};
  for (const std::uint32_t epoch : {0u, 7u}) EXPECT_EQ(EpochOf(*made, epoch), expected);
  std::vector<bool> last;
  for (std::uint64_t i = 0; i < 4; ++i)
    last.push_back(made->IsLastOfImage(*made->DeriveSpec(0, i)));
  EXPECT_EQ(last, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(made->ImageRunLengths(), (std::vector<std::uint64_t>{1, 1, 2}));
  const auto parsed = ParsePlan(made->Text());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(EpochOf(*parsed, 1), expected);
  // Shares of images and their number stay those of the images.
  EXPECT_EQ(made->cumulative_patches(), (std::vector<std::uint64_t>{0, 3, 3, 4}));
}

TEST_F(ListedPlan, AnOrderThatIsImageByImageChangesNoPlan) {
  const RunConfig config = Config(", order: sequential");
  const auto plain = Plan::Build(config, Images());
  const auto ordered = Plan::Build(config, Images(), {{0, 3}, {2, 1}});
  const auto backwards = Plan::Build(config, Images(), {{2, 1}, {0, 3}});
  ASSERT_TRUE(plain.ok() && ordered.ok() && backwards.ok());
  EXPECT_EQ(plain->digest(), ordered->digest());
  EXPECT_EQ(plain->Text().find("positions_order"), std::string::npos);
  EXPECT_NE(plain->digest(), backwards->digest());
  EXPECT_EQ(EpochOf(*backwards, 0).front(), (std::pair<std::uint32_t, std::int64_t>{2, 5}));
}

TEST_F(ListedPlan, PlacesThatALimitLeavesComeInTheTablesOrder) {
  std::vector<PlannedImage> images = Images();
  images[0].listed.clear();
  std::vector<ListedRun> order;
  for (std::int32_t i = 0; i < 500; ++i) {
    images[0].listed.push_back({i, 1});
    AppendListed(0, 1, order);
    if (i == 250) AppendListed(2, 1, order);
  }
  for (const auto& runs : {order, std::vector<ListedRun>()}) {
    const auto made = Plan::Build(Config(", order: sequential, max_per_slide: 40"), images, runs);
    ASSERT_TRUE(made.ok()) << made.status();
    const auto epoch = EpochOf(*made, 0);
    ASSERT_EQ(epoch.size(), 41u);
    EXPECT_EQ(epoch, EpochOf(*made, 1));
    std::vector<std::int64_t> rows;
    for (const auto& [image, y] : epoch) {
      if (image == 0) rows.push_back(y);
    }
    EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()), rows.end());
    EXPECT_GT(rows.back(), 250);
    EXPECT_LT(rows.front(), 250);
    const auto other =
        std::find(epoch.begin(), epoch.end(), std::pair<std::uint32_t, std::int64_t>{2, 5});
    ASSERT_NE(other, epoch.end());
    if (runs.empty()) {
      EXPECT_EQ(other + 1, epoch.end());
    } else {
      EXPECT_LE((other - 1)->second, 250);
      EXPECT_GT((other + 1)->second, 250);
    }
    EXPECT_TRUE(ParsePlan(made->Text()).ok());
  }
}

TEST_F(ListedPlan, RefusesAnOrderThatIsNotOfItsPlaces) {
  const auto error = [](const std::string& sampling, const std::vector<ListedRun>& order) {
    return std::string(MessageOf(Plan::Build(Config(sampling), Images(), order).status()));
  };
  const std::string sequential = ", order: sequential";
  for (const std::vector<ListedRun>& order : {std::vector<ListedRun>{{0, 3}},
                                              {{0, 4}},
                                              {{2, 1}, {0, 2}},
                                              {{2, 2}, {0, 3}},
                                              {{2, 1}, {0, 3}, {1, 1}}}) {
    EXPECT_EQ(error(sequential, order), "order of positions: not every place of the images once");
  }
  EXPECT_EQ(error(sequential, {{3, 4}}), "order of positions: an image that is not there");
  EXPECT_EQ(error("", {{2, 1}, {0, 3}}),
            "plan: an order of positions that its epochs do not follow");
}

TEST(ListedRuns, ComeBackFromTheirTextAndNothingElseDoes) {
  const std::vector<ListedRun> runs = {{0, 1}, {100'000, 300}, {0, 9'999'699}};
  const auto read = DecodeListedRuns(EncodeListedRuns(runs));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, runs);
  EXPECT_TRUE(DecodeListedRuns("")->empty());
  const auto refuses = [](const std::vector<ListedRun>& wrong) {
    return !DecodeListedRuns(EncodeListedRuns(wrong)).ok();
  };
  EXPECT_TRUE(refuses({{0, 0}}));
  EXPECT_TRUE(refuses({{4, 1}, {4, 1}}));
  EXPECT_TRUE(refuses({{0, 1}, {1, 10'000'000}}));
  EXPECT_FALSE(DecodeListedRuns(Base64Of("\x01")).ok());
  EXPECT_FALSE(DecodeListedRuns("?").ok());
}

TEST_F(ListedPlan, OtherPlacesAreAnotherPlan) {
  std::vector<PlannedImage> moved = Images();
  moved[2].listed[0].x = 7;
  const auto a = Plan::Build(Config(""), Images()), b = Plan::Build(Config(""), moved);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->digest(), b->digest());
}

TEST_F(ListedPlan, WeightsDrawImagesAndThenTheirPlaces) {
  std::vector<PlannedImage> images = Images();
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i].groups = {static_cast<std::uint32_t>(i == 2)};
  const auto made =
      Plan::Build(Config(", weight_by: site, patches_per_epoch: 30000"), std::move(images));
  ASSERT_TRUE(made.ok()) << made.status();
  std::map<std::pair<std::uint32_t, std::int64_t>, int> counts;
  for (std::uint64_t i = 0; i < made->patches_per_epoch(); ++i) {
    const auto spec = made->DeriveSpec(0, i);
    ASSERT_TRUE(spec.ok()) << spec.status();
    ++counts[{spec->image, spec->box.y}];
  }
  // Half of them in each site: 3 sigma of 30,000 draws are 260, of a third of a half 195.
  EXPECT_EQ(counts.size(), 4u);
  EXPECT_NEAR((counts[{2, 5}]), 15'000, 260);
  for (const std::int64_t y : {0, 999, 10}) EXPECT_NEAR((counts[{0, y}]), 5'000, 195);
}

TEST_F(ListedPlan, RefusesWhatHasNoPlaces) {
  std::vector<PlannedImage> none = Images();
  for (PlannedImage& image : none) image.listed.clear();
  EXPECT_EQ(MessageOf(Plan::Build(Config(""), none).status()),
            "plan: key 'sampling.positions': none of 3 images has a position");
  std::vector<PlannedImage> outside = Images();
  outside[2].listed[0].y = 1000;
  EXPECT_EQ(MessageOf(Plan::Build(Config(""), outside).status()),
            "plan: image 2: 1 position lies outside the image");
}

TEST_F(ListedPlan, RefusesKeysThatDoNotGoWithATable) {
  const auto error = [](const std::string& sampling, const std::string& size = "[64, 64]") {
    const auto config = ParseRunConfig(
        StrCat("dataset: t.csv\npatch: {size: ", size, "}\nsampling: {", sampling, "}\n"),
        "r.yaml");
    return config.ok() ? "" : std::string(MessageOf(config.status()));
  };
  const auto has = [](const std::string& text, const std::string& what) {
    return text.find("r.yaml:3") == 0 && text.find(what) != std::string::npos;
  };
  EXPECT_PRED2(has, error("positions: coords.h5"),
               "'coords.h5' is neither grid, random nor a table");
  EXPECT_PRED2(has, error("positions: c.csv, tissue: {}"),
               "tissue needs positions: grid or random");
  EXPECT_PRED2(has, error("positions: c.csv, patches_per_epoch: 5"), "need positions: random");
  EXPECT_PRED2(has, error("positions: c.csv, stride: [8, 8]"), "need positions: grid");
  EXPECT_PRED2(has, error("positions: c.csv", "[8, 8, 8]"), "patch.size has three values");
}

}  // namespace
}  // namespace patchbay::plan
