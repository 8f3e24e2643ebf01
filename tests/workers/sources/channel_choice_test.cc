// Channels by name: what a store's attributes call them, which of them a run gets, and images that
// decode all of theirs.
#include "workers/sources/channel_choice.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patchbay::workers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> NamesIn(const std::string& attributes, int channels) {
  return StoredChannelNames(*ParseJson(attributes, "attributes"), channels);
}

TEST(StoredChannelNames, AreThoseOfPatchbayElseOfOmero) {
  EXPECT_THAT(NamesIn(R"({"patchbay": {"channels": [{"name": "t1"}, {"name": "flair"}]},
                          "ome": {"omero": {"channels": [{"label": "a"}, {"label": "b"}]}}})",
                      2),
              ElementsAre("t1", "flair"));
  const std::string omero = R"({"omero": {"channels": [{"label": "DAPI"}, {"label": "CD8, β"}]}})";
  EXPECT_THAT(NamesIn(StrCat(R"({"ome": )", omero, "}"), 2), ElementsAre("DAPI", "CD8, β"));
  EXPECT_THAT(NamesIn(omero, 2), ElementsAre("DAPI", "CD8, β")) << "NGFF 0.4";
}

TEST(StoredChannelNames, AreNoneWhereTheySayNothingOrAreAmbiguous) {
  const auto of_labels = [](const std::string& labels, int channels) {
    return NamesIn(StrCat(R"({"ome": {"omero": {"channels": [)", labels, "]}}}"), channels);
  };
  const std::string two = R"({"label": "a"}, {"label": "b"})";
  EXPECT_THAT(of_labels(two, 2), ElementsAre("a", "b"));
  EXPECT_THAT(of_labels(two, 3), IsEmpty()) << "not one for each channel";
  EXPECT_THAT(of_labels(R"({"label": "a"}, {"label": "a"})", 2), IsEmpty());
  EXPECT_THAT(of_labels(R"({"label": "a"}, {"label": ""})", 2), IsEmpty());
  EXPECT_THAT(of_labels(R"({"label": "a"}, {"label": "b\n"})", 2), IsEmpty());
  EXPECT_THAT(of_labels(R"({"label": "a"}, {"label": 7})", 2), IsEmpty());
  EXPECT_THAT(of_labels(R"({"label": "a"}, "b")", 2), IsEmpty());
  EXPECT_THAT(of_labels(StrCat(R"({"label": "a"}, {"label": ")", std::string(65, 'x'), "\"}"), 2),
              IsEmpty());
  EXPECT_THAT(of_labels(R"({"label": "Red"}, {"label": "G"}, {"label": "blue"})", 3), IsEmpty());
  for (const char* none : {"{}", "[]", "null", R"({"ome": 3})", R"({"patchbay": []})",
                           R"({"ome": {"omero": {"channels": {}}}})"}) {
    EXPECT_THAT(NamesIn(none, 2), IsEmpty()) << none;
  }
}

TEST(WithoutNumbered, NumbersAloneAreNoNames) {
  EXPECT_THAT(WithoutNumbered({"channel 0", "channel 1"}), IsEmpty());
  EXPECT_THAT(WithoutNumbered({"1", "2"}), IsEmpty());
  EXPECT_THAT(WithoutNumbered({"Ch_0", "c1"}), IsEmpty());
  EXPECT_THAT(WithoutNumbered({"channel 1", "channel 0"}), ElementsAre("channel 1", "channel 0"));
  EXPECT_THAT(WithoutNumbered({"CD3", "CD4"}), ElementsAre("CD3", "CD4"));
}

ImageLayout LayoutOf(int channels, DType dtype, std::vector<std::string> names) {
  ImageLayout layout;
  layout.channels = channels;
  layout.dtype = dtype;
  layout.channel_names = std::move(names);
  return layout;
}

TEST(ChooseChannels, FindsThePlacesOfTheNamesAndNamesWhatIsThere) {
  const ImageLayout brain = LayoutOf(3, DType::kInt16, {"t1", "t2", "flair"});
  EXPECT_THAT(*ChooseChannels({"flair", "t1"}, brain), ElementsAre(2, 0));
  EXPECT_THAT(*ChooseChannels({}, brain), IsEmpty());
  EXPECT_EQ(MessageOf(ChooseChannels({"t1", "T2"}, brain).status()),
            "key 'patch.channels': the image has no channel 'T2'; it has t1, t2, flair");
  const ImageLayout colours = LayoutOf(3, DType::kUint8, {});
  EXPECT_THAT(*ChooseChannels({"green"}, colours), ElementsAre(1));
  EXPECT_THAT(
      std::string(MessageOf(ChooseChannels({"x"}, LayoutOf(3, DType::kUint16, {})).status())),
      HasSubstr("the channels of the image (3) have no names"));
  std::vector<std::string> many;
  for (int c = 0; c < 40; ++c) many.push_back(StrCat("m", c));
  EXPECT_THAT(
      std::string(MessageOf(ChooseChannels({"x"}, LayoutOf(40, DType::kUint16, many)).status())),
      HasSubstr("m15 and 24 more"));
}

/// An image whose pixel (z, y, x) of channel c is 1000 c + 100 z + 10 y + x, and which has no way
/// to decode some of its channels.
class Numbered : public ImageSource {
 public:
  Numbered() : layout_(LayoutOf(4, DType::kUint16, {"a", "b", "c", "d"})) {}
  const ImageLayout& layout() const override { return layout_; }
  std::unique_ptr<DecodeScratch> MakeScratch() const override {
    return std::make_unique<DecodeScratch>();
  }
  Status Fetch(int, const Box& box, EncodedPatch& out) const override {
    out.box = box;
    return absl::OkStatus();
  }
  Status Decode(const EncodedPatch& patch, const TensorView& out, double,
                DecodeScratch&) const override {
    const TensorView view = out.rank == 3 ? WithDepth(out) : out;
    for (std::int64_t i = 0; i < patch.box.Pixels() * 4; ++i) {
      const Point at = CellAt(patch.box.Shape(), i / 4);
      const auto value = static_cast<std::uint16_t>(1000 * (i % 4) + 100 * at.z + 10 * at.y + at.x);
      std::memcpy(view.data + at.z * view.stride_bytes[0] + at.y * view.stride_bytes[1] +
                      at.x * view.stride_bytes[2] + i % 4 * view.stride_bytes[3],
                  &value, 2);
    }
    return absl::OkStatus();
  }

 private:
  ImageLayout layout_;
};

TEST(DecodeChosen, TakesTheChosenOfAllChannelsIntoAnyStrides) {
  const Numbered image;
  EncodedPatch patch;
  patch.channels = {3, 1};
  ASSERT_TRUE(image.Fetch(0, BoxAt({}, {2, 3, 5}), patch).ok());
  std::vector<std::uint16_t> out(2 * 3 * 5 * 2);
  std::vector<std::byte> room;
  const auto scratch = image.MakeScratch();
  TensorView view = ContiguousView<4>(reinterpret_cast<std::byte*>(out.data()), DType::kUint16,
                                      {2, 3, 5, std::int64_t{2}});
  ASSERT_TRUE(DecodeChosen(image, patch, view, 0, *scratch, room).ok());
  for (std::int64_t i = 0; i < 30; ++i) {
    const Point at = CellAt({2, 3, 5}, i);
    const auto place = 100 * at.z + 10 * at.y + at.x;
    ASSERT_EQ(out[static_cast<std::size_t>(2 * i)], 3000 + place);
    ASSERT_EQ(out[static_cast<std::size_t>(2 * i + 1)], 1000 + place);
  }
  view.stride_bytes = {30, 10, 2, 60};  // planes
  ASSERT_TRUE(DecodeChosen(image, patch, view, 0, *scratch, room).ok());
  EXPECT_EQ(out[0], 3000);
  EXPECT_EQ(out[29], 3000 + 124);
  EXPECT_EQ(out[30], 1000);
  EXPECT_EQ(out[59], 1000 + 124);
}

}  // namespace
}  // namespace patchbay::workers
