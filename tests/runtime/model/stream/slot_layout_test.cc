// Where arrays lie in a slot: the numbers that trainer and worker must compute alike.
#include "runtime/model/stream/slot_layout.h"

#include <gtest/gtest.h>

#include "runtime/model/stream/limits.h"

namespace patchbay {
namespace {

BatchLayout ImageAndMeta(std::vector<std::int64_t> image, DType dtype = DType::kFloat16) {
  BatchLayout layout{{{"image", dtype, std::move(image), ArrayMemory::kStream}}};
  for (ArrayLayout& array : MetaArrays()) layout.arrays.push_back(std::move(array));
  return layout;
}

struct Case {
  const char* name;
  BatchLayout layout;
  std::uint32_t capacity;
  bool device;
  std::vector<std::uint64_t> offsets;  ///< offset of each array in the slot's host memory
  std::uint64_t host_stride, device_stride;
};

std::vector<Case> Cases() {
  const BatchLayout image_only{{{"image", DType::kUint8, {3, 4, 5}, ArrayMemory::kStream}}};
  const BatchLayout two_images{{{"image", DType::kUint8, {100}, ArrayMemory::kStream},
                                {"image_1", DType::kUint8, {100}, ArrayMemory::kStream},
                                {"ordinal", DType::kInt64, {}, ArrayMemory::kHost}}};
  return {
      {"one image", image_only, 16, false, {0}, 4096, 0},
      {"one image, a page exactly",
       {{{"image", DType::kUint8, {256}, {}}}},
       16,
       false,
       {0},
       4096,
       0},
      {"one image, a byte more", {{{"image", DType::kUint8, {4097}, {}}}}, 1, false, {0}, 8192, 0},
      // 16 * 120 = 1920 -> 2048; ordinal 128 -> 256; image_index and level 64 -> 256; box 768.
      {"meta", ImageAndMeta({3, 4, 5}), 16, false, {0, 2048, 2304, 2560, 2816}, 4096, 0},
      {"meta, one patch", ImageAndMeta({3, 4, 5}), 1, false, {0, 256, 512, 768, 1024}, 4096, 0},
      {"two images", two_images, 3, false, {0, 512, 1024}, 4096, 0},
      {"one image on a device", image_only, 16, true, {0}, 4096, 4096},
      {"two images on a device", two_images, 3, true, {0, 512, 4096}, 8192, 4096},
      {"meta beside a device",
       ImageAndMeta({3, 64, 64}),
       16,
       true,
       {0, 393216, 393472, 393728, 393984},
       397312,
       393216},
  };
}

TEST(SlotLayout, PutsArraysWhereTheContractSays) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const auto slot = SlotLayout::Of(c.layout, c.capacity, c.device);
    ASSERT_TRUE(slot.ok()) << slot.status();
    EXPECT_EQ(slot->host_stride(), c.host_stride);
    EXPECT_EQ(slot->device_stride(), c.device_stride);
    for (std::size_t i = 0; i < c.offsets.size(); ++i) {
      EXPECT_EQ(slot->InHost(i, 0, c.capacity).offset_bytes, c.offsets[i]) << "array " << i;
      const bool on_device = c.device && c.layout.arrays[i].memory == ArrayMemory::kStream;
      EXPECT_EQ(slot->OnDevice(i), on_device) << "array " << i;
      if (on_device) {
        EXPECT_EQ(slot->InDevice(i, 0, c.capacity), slot->InHost(i, 0, c.capacity))
            << "staging is laid out as the device block";
      }
    }
  }
}

TEST(SlotLayout, RangesOfRunsFillEveryArrayWithoutGapOrOverlap) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const SlotLayout slot = *SlotLayout::Of(c.layout, c.capacity, c.device);
    for (std::size_t i = 0; i < slot.arrays(); ++i) {
      std::uint64_t next = slot.InHost(i, 0, 1).offset_bytes;
      EXPECT_EQ(next % kArrayAlignment, 0u);
      for (std::uint32_t place = 0; place < c.capacity; ++place) {
        const ByteRange range = slot.InHost(i, place, 1);
        EXPECT_EQ(range.offset_bytes, next);
        EXPECT_EQ(range.size_bytes, c.layout.arrays[i].PatchBytes());
        next += range.size_bytes;
      }
      EXPECT_LE(next, slot.host_stride());
      if (i + 1 < slot.arrays() && slot.OnDevice(i) == slot.OnDevice(i + 1)) {
        EXPECT_LE(next, slot.InHost(i + 1, 0, 1).offset_bytes);
      }
    }
    EXPECT_EQ(slot.BytesOf(c.capacity), c.capacity * c.layout.PatchBytes());
    EXPECT_TRUE(slot.Holds(0, c.capacity));
    EXPECT_FALSE(slot.Holds(1, c.capacity));
    EXPECT_FALSE(slot.Holds(~0u, 2));
    EXPECT_FALSE(slot.Holds(c.capacity, ~0u));
  }
}

TEST(SlotLayout, RefusesSlotsThatAreEmptyOrTooLarge) {
  const BatchLayout layout = ImageAndMeta({3, 16384, 16384});
  EXPECT_TRUE(absl::IsInvalidArgument(SlotLayout::Of(layout, 0, false).status()));
  EXPECT_TRUE(SlotLayout::Of(layout, 100, false).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(SlotLayout::Of(layout, 1000, false).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SlotLayout::Of(layout, ~0u, true).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(SlotLayout::Of({}, 1, false).status()));
}

TEST(BatchLayout, ComesBackFromItsJsonAndHasOneDigest) {
  const BatchLayout layout = ImageAndMeta({3, 4, 5});
  const auto read = BatchLayoutFromJson(ToJson(layout));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, layout);
  EXPECT_EQ(read->ToDigest(), layout.ToDigest());
  BatchLayout other = layout;
  other.arrays[1].memory = ArrayMemory::kStream;
  EXPECT_NE(other.ToDigest(), layout.ToDigest());
  const auto of_plan = LayoutOfPlan(DumpJson({{"layout", ToJson(layout)}, {"version", 1}}));
  ASSERT_TRUE(of_plan.ok()) << of_plan.status();
  EXPECT_EQ(*of_plan, layout);
}

TEST(BatchLayout, RefusesHostileLayouts) {
  const auto refused = [](auto change) {
    Json value = ToJson(ImageAndMeta({3, 4, 5}));
    change(value);
    const auto read = BatchLayoutFromJson(value);
    return absl::IsInvalidArgument(read.status());
  };
  EXPECT_TRUE(refused([](Json& v) { v = Json::array(); })) << "no array";
  EXPECT_TRUE(refused([](Json& v) { v = Json::object(); }));
  EXPECT_TRUE(refused([](Json& v) {
    while (v.size() <= kMaxArrays) v.push_back(v[0]);
  }));
  EXPECT_TRUE(refused([](Json& v) { v[1]["name"] = "image"; })) << "a duplicate name";
  EXPECT_TRUE(refused([](Json& v) { v[1]["name"] = "../image"; })) << "it goes into file names";
  EXPECT_TRUE(refused([](Json& v) { v[1]["name"] = ""; }));
  EXPECT_TRUE(refused([](Json& v) { v[1]["name"] = std::string(kMaxArrayNameBytes + 1, 'a'); }));
  EXPECT_TRUE(refused([](Json& v) { v[0]["dtype"] = "float128"; }));
  EXPECT_TRUE(refused([](Json& v) { v[0]["memory"] = "moon"; }));
  EXPECT_TRUE(refused([](Json& v) { v[0]["shape"] = 5; }));
  EXPECT_TRUE(refused([](Json& v) { v[0]["shape"] = {3, 0, 5}; }));
  EXPECT_TRUE(refused([](Json& v) { v[0]["shape"] = {3, -4, 5}; }));
  EXPECT_TRUE(refused([](Json& v) { v[0]["shape"] = {1, 1, 1, 1, 1, 1}; }));
  EXPECT_TRUE(refused([](Json& v) {
    v[0]["shape"] = {1u << 31, 1u << 31, 1u << 31};
  })) << "the product does not fit";
  EXPECT_TRUE(refused([](Json& v) { v[0]["shape"] = {std::uint64_t{1} << 63}; }));
  for (const char* key : {"name", "dtype", "shape", "memory"}) {
    EXPECT_TRUE(refused([key](Json& v) { v[2].erase(key); })) << key;
  }
  for (const char* text : {"", "{}", "[]", R"({"layout":[]})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(LayoutOfPlan(text).status())) << text;
  }
}

}  // namespace
}  // namespace patchbay
