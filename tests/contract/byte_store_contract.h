// The contract of every kind of byte store, whatever lies behind it. A test file names the kinds it
// has: INSTANTIATE_TEST_SUITE_P(Files, ByteStoreContract, testing::Values(...)).
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

/// A place that holds objects, one for each test.
class StoragePlace {
 public:
  virtual ~StoragePlace() = default;
  /// Puts an object there, in place of the one of that key.
  virtual void Put(const std::string& key, const std::string& content) = 0;
  /// A new store over the existing objects.
  virtual std::unique_ptr<ByteStore> Open() = 0;
};

using StoragePlaceMaker = std::unique_ptr<StoragePlace> (*)();

inline std::string Content(ByteStore& store, const std::string& key) {
  auto text = ReadObject(store, key, 1 << 20);
  return text.ok() ? *text : std::string("error: ") + std::string(text.status().message());
}

class ByteStoreContract : public testing::TestWithParam<StoragePlaceMaker> {
 protected:
  ByteStoreContract() {
    const std::map<std::string, std::string> objects = {
        {"zarr.json", "{}"}, {"0/c/0/0", "0123456789"}, {"0/c/0/1", "more"}, {"empty", ""}};
    for (const auto& [key, content] : objects) place_->Put(key, content);
    store_ = place_->Open();
  }

  const std::unique_ptr<StoragePlace> place_ = GetParam()();
  std::unique_ptr<ByteStore> store_;
};

TEST_P(ByteStoreContract, ReadsRanges) {
  const auto object = store_->Open("0/c/0/0");
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

TEST_P(ByteStoreContract, NamesAndListsObjects) {
  EXPECT_EQ(Content(*store_, "zarr.json"), "{}");
  EXPECT_EQ(Content(*store_, "empty"), "");
  const auto none = store_->Open("0/c/9/9");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none, nullptr);
  EXPECT_TRUE(absl::IsNotFound(ReadObject(*store_, "0/c/9/9", 10).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadObject(*store_, "0/c/0/0", 9).status()));
  EXPECT_NE(store_->NameOf("0/c/0/0").find("0/c/0/0"), std::string::npos);
  using Keys = std::vector<std::string>;
  EXPECT_EQ(*store_->List(""), (Keys{"0/c/0/0", "0/c/0/1", "empty", "zarr.json"}));
  EXPECT_EQ(*store_->List("0/c"), (Keys{"0/c/0/0", "0/c/0/1"}));
  EXPECT_EQ(*store_->List("7"), Keys{});
}

TEST_P(ByteStoreContract, ReadsFromManyThreads) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        wrong[t] += Content(*store_, i % 2 == 0 ? "0/c/0/0" : "zarr.json") !=
                    (i % 2 == 0 ? "0123456789" : "{}");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST_P(ByteStoreContract, TellsAReplacedObjectOfEqualSizeByItsStamp) {
  const auto before = *store_->Open("0/c/0/1");
  place_->Put("0/c/0/1", "MORE");
  const auto after = *place_->Open()->Open("0/c/0/1");
  ASSERT_NE(after, nullptr);
  EXPECT_NE(std::string(before->stamp()), std::string(after->stamp()));
  std::string text(4, ' ');
  const Status held = before->Read(0, std::as_writable_bytes(std::span(text)), "held");
  EXPECT_TRUE(absl::IsAborted(held) || (held.ok() && text == "more"))
      << "what is open is read as it was, or not at all: " << held << " " << text;
}

}  // namespace patchbay::zarr
