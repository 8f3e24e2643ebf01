// The contract of every kind of byte store, whatever lies behind it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/format/zarr/byte_store.h"

namespace patchbay::zarr {

/// Makes a store that holds these objects, and replaces one of them later.
struct ByteStoreMaker {
  std::function<std::unique_ptr<ByteStore>(const std::map<std::string, std::string>&)> make;
  std::function<void(const std::string& key, const std::string& content)> replace;
};

inline std::string Content(ByteStore& store, const std::string& key) {
  auto text = ReadObject(store, key, 1 << 20);
  return text.ok() ? *text : std::string("error: ") + std::string(text.status().message());
}

inline void ExpectReadsRanges(ByteStore& store) {
  const auto object = store.Open("0/c/0/0");
  ASSERT_TRUE(object.ok() && *object != nullptr);
  EXPECT_EQ((*object)->size_bytes(), 10u);
  std::string part(4, ' ');
  ASSERT_TRUE((*object)->Read(3, std::as_writable_bytes(std::span(part)), "part").ok());
  EXPECT_EQ(part, "3456");
  const Status past = (*object)->Read(8, std::as_writable_bytes(std::span(part)), "the part");
  EXPECT_TRUE(absl::IsDataLoss(past)) << past;
  EXPECT_NE(past.message().find("the part"), std::string::npos) << past;
  EXPECT_TRUE((*object)->Read(10, {}, "nothing").ok());
}

inline void ExpectNamesAndLists(ByteStore& store) {
  EXPECT_EQ(Content(store, "zarr.json"), "{}");
  EXPECT_EQ(Content(store, "empty"), "");
  const auto none = store.Open("0/c/9/9");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, nullptr);
  EXPECT_TRUE(absl::IsNotFound(ReadObject(store, "0/c/9/9", 10).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadObject(store, "0/c/0/0", 9).status()));
  EXPECT_NE(store.NameOf("0/c/0/0").find("0/c/0/0"), std::string::npos);
  using Keys = std::vector<std::string>;
  EXPECT_EQ(*store.List(""), (Keys{"0/c/0/0", "0/c/0/1", "empty", "zarr.json"}));
  EXPECT_EQ(*store.List("0/c"), (Keys{"0/c/0/0", "0/c/0/1"}));
  EXPECT_EQ(*store.List("7"), Keys{});
}

inline void ExpectReadsFromManyThreads(ByteStore& store) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        wrong[t] += Content(store, i % 2 == 0 ? "0/c/0/0" : "zarr.json") !=
                    (i % 2 == 0 ? "0123456789" : "{}");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

/// The whole suite.
inline void ExpectByteStoreContract(const ByteStoreMaker& maker) {
  const auto store = maker.make(
      {{"zarr.json", "{}"}, {"0/c/0/0", "0123456789"}, {"0/c/0/1", "more"}, {"empty", ""}});
  ExpectReadsRanges(*store);
  ExpectNamesAndLists(*store);
  ExpectReadsFromManyThreads(*store);
  const auto before = *store->Open("0/c/0/1");
  maker.replace("0/c/0/1", "MORE");
  const auto other = maker.make({});
  const auto after = *other->Open("0/c/0/1");
  ASSERT_NE(after, nullptr);
  EXPECT_NE(std::string(before->stamp()), std::string(after->stamp()))
      << "replaced content of equal size has another stamp";
  std::string text(4, ' ');
  const Status held = before->Read(0, std::as_writable_bytes(std::span(text)), "held");
  EXPECT_TRUE(absl::IsAborted(held) || (held.ok() && text == "more"))
      << "what is open is read as it was, or not at all: " << held << " " << text;
}

}  // namespace patchbay::zarr
