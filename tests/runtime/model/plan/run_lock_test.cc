// The content of a lock, the differences of two, and every text that is not a lock.
#include "runtime/model/plan/run_lock.h"

#include <gtest/gtest.h>

#include "runtime/core/strings.h"
#include "tests/contract/known_ops.h"
#include "tests/described.h"

namespace patchbay::plan {
namespace {

LockedImage MakeLockedImage(const std::string& id, const std::string& split, char pixels,
                            char labels) {
  LockedImage image;
  image.slide_id = id;
  image.digest = Digest::FromHex(std::string(64, pixels)).value();
  image.cells = {{"fold", split}, {"patient_id", "P" + id}};
  image.sets = {{"gleason", Digest::FromHex(std::string(64, labels)).value()}};
  return image;
}

RunLock Lock() {
  RunLock lock;
  lock.keys = {{}, {{"use", {"1"}}}, "fold", {"fold", "patient_id"}, {"gleason"}};
  lock.statistics = {{"stain_reference", {0.5, 0.25}}};
  lock.images = {MakeLockedImage("007", "train", 'a', '1'),
                 MakeLockedImage("B \"x\"", "val", 'b', '2')};
  return lock;
}

std::string ParseError(const std::string& text) {
  const auto lock = ParseRunLock(text, "run.lock");
  return lock.ok() ? "" : std::string(MessageOf(lock.status()));
}

TEST(RunLock, EveryFieldComesBack) {
  test::ExpectEveryFieldComesBack<LockedKeys>();
  test::ExpectEveryFieldComesBack<LockedImage>();
}

TEST(RunLock, ComesBackFromItsText) {
  const RunLock lock = Lock();
  const std::string text = LockText(lock);
  const auto read = ParseRunLock(text, "run.lock");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->images, lock.images);
  EXPECT_EQ(read->keys, lock.keys);
  EXPECT_EQ(read->statistics, lock.statistics);
  EXPECT_EQ(LockText(*read), text);
  EXPECT_TRUE(DifferenceOf(lock, *read).Empty());
  EXPECT_EQ(DifferenceOf(lock, *read).Summary(), "no difference");
}

TEST(RunLock, HasALineForEveryImage) {
  const std::string text = LockText(Lock());
  EXPECT_NE(
      text.find("\n{\"cells\":{\"fold\":\"train\",\"patient_id\":\"P007\"},\"digest\":\"aaaa"),
      std::string::npos)
      << text;
}

TEST(RunLock, DifferencesAreCountedByKind) {
  const RunLock before = Lock();
  RunLock now = Lock();
  now.images.push_back(MakeLockedImage("new1", "train", 'c', '1'));
  now.images.push_back(MakeLockedImage("new2", "train", 'd', '1'));
  now.images[0].sets["gleason"] = Digest::FromHex(std::string(64, '9')).value();
  EXPECT_EQ(DifferenceOf(before, now).Summary(), "+2 slides, 1 relabelled");
  now.images[1].digest = now.images[0].digest;
  now.images[1].cells["fold"] = "train";
  now.statistics["stain_reference"][0] = 0.75;
  const LockDifference found = DifferenceOf(before, now);
  EXPECT_EQ(found.Summary(),
            "+2 slides, 1 relabelled, 1 with other pixels, 1 with other cells, other statistics "
            "(stain_reference)");
  EXPECT_EQ(found.changed, std::vector<std::string>{"B \"x\""});
  EXPECT_EQ(found.relabelled, std::vector<std::string>{"007"});
  EXPECT_EQ(DifferenceOf(now, before).removed, (std::vector<std::string>{"new1", "new2"}));
  now.images.erase(now.images.begin() + 1, now.images.end());
  now.keys.split_column = "fold_1";
  EXPECT_EQ(DifferenceOf(before, now).Summary(),
            "another split_column, -1 slide, 1 relabelled, other statistics (stain_reference)");
}

TEST(RunLock, TextsThatAreNoLockAreRefused) {
  const std::string good = LockText(Lock());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return ParseError(text);
  };
  const auto says = [](const std::string& error, const std::string& what) {
    return error.find("read lock: run.lock: ") == 0 && error.find(what) != std::string::npos &&
           error.find("`patchbay lock --update`") != std::string::npos;
  };
  EXPECT_PRED2(says, ParseError(""), "run.lock");
  EXPECT_EQ(ParseError("dataset: a\n"),
            "read lock: run.lock: not JSON (line 1, column 1), so no lock of a run; `patchbay lock "
            "--update` writes a new one");
  EXPECT_PRED2(says, ParseError("[]"), "no lock of a run");
  EXPECT_PRED2(says, ParseError(good.substr(0, good.size() / 2)), "run.lock");
  EXPECT_EQ(
      with("\"version\": 1", "\"version\": 2"),
      "read lock: run.lock: version 2, this program knows 1; `patchbay lock --update` writes a "
      "new one");
  EXPECT_PRED2(says, with("\"version\": 1", "\"version\": 0"), "version 0, this program knows 1");
  EXPECT_PRED2(says, with("\"version\": 1", "\"version\": \"1\""), "no lock of a run");
  EXPECT_PRED2(says, with("\"columns\":[", "\"columns\":[7,"), "key 'columns[0]'");
  EXPECT_PRED2(says, with("{\"use\":[\"1\"]}", "{\"use\":1}"), "key 'where.use'");
  EXPECT_PRED2(says, with("\"statistics\": {", "\"statistics\": 1, \"x\": {"), "no statistics");
  EXPECT_PRED2(says, with("\"slide_id\":\"007\"", "\"slide_id\":7"), "image 0");
  EXPECT_PRED2(says, with("bbbb", "bbbg"), "image 1");
  EXPECT_PRED2(says, with("\"gleason\":\"2", "\"gleason\":\"x"), "image 1");
  EXPECT_PRED2(says, with("\"fold\":\"val\"", "\"fold\":{}"), "image 1");
  EXPECT_PRED2(says, with("\"slide_id\":\"B \\\"x\\\"", "\"slide_id\":\"007"),
               "image 1: '007' is listed twice");
}

TEST(RunLock, PinsWhatTheConfigGoesBy) {
  const auto config = ParseRunConfig(
      "dataset: t.csv\nwhere: {use: 1}\nsplit_column: fold\npatch: {size: [8, 8]}\n"
      "labels: {set: gleason, mask: true}\n"
      "sampling: {positions: random, patches_per_epoch: 9, weight_by: site}\n"
      "splits: {val: {sampling: {positions: grid, tissue: {min_fraction: 0.1, set: mine}}}}\n",
      "run.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto keys = LockedKeysOf(*config);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->columns, (std::vector<std::string>{"fold", "patient_id", "site", "use"}));
  EXPECT_EQ(keys->sets, (std::vector<std::string>{"gleason", "mine"}));
  EXPECT_TRUE(keys->dataset.empty());
  LockedKeys other = *keys;
  EXPECT_EQ(DifferingKey(*keys, other), "");
  other.where["use"] = {"2"};
  EXPECT_EQ(DifferingKey(*keys, other), "where");
}

TEST(RunLock, PinsTheSetThatStainFitsGoBy) {
  const auto keys_of = [](const std::string& options) {
    return *LockedKeysOf(*ParseRunConfig(
        StrCat("dataset: t.csv\npatch: {size: [8, 8]}\npreprocess: [", options, "]\n"), "r"));
  };
  const LockedKeys without = keys_of(""), unasked = keys_of("stain_normalize");
  const LockedKeys none = keys_of("stain_normalize: {tissue: none}");
  const LockedKeys mine = keys_of("stain_normalize: {tissue: mine}");
  EXPECT_EQ(without.stain_set, "");
  EXPECT_EQ(unasked.stain_set, "tissue");
  EXPECT_TRUE(unasked.sets.empty()) << "images may lack it";
  EXPECT_EQ(SetsToLock(unasked), std::vector<std::string>{"tissue"});
  EXPECT_EQ(none.stain_set, "none");
  EXPECT_TRUE(SetsToLock(none).empty());
  EXPECT_EQ(mine.stain_set, "");
  EXPECT_EQ(SetsToLock(mine), std::vector<std::string>{"mine"});
  const std::string_view key = "labels.set, sampling.tissue.set or stain_normalize.tissue";
  EXPECT_EQ(DifferingKey(unasked, none), key);
  EXPECT_EQ(DifferingKey(none, unasked), key);
  EXPECT_EQ(DifferingKey(mine, unasked), key);
  LockedKeys earlier = unasked;
  earlier.stain_set = "";
  EXPECT_EQ(DifferingKey(earlier, unasked), "") << "a lock of an earlier version";
  RunLock lock = Lock();
  EXPECT_EQ(LockText(lock).find("stain_set"), std::string::npos);
  lock.keys = unasked;
  EXPECT_EQ(ParseRunLock(LockText(lock), "run.lock")->keys, unasked);
}

TEST(RunLock, HasThePlacesOfEachTableOfPositions) {
  const std::string plain = LockText(Lock());
  EXPECT_EQ(plain.find("places"), std::string::npos);
  RunLock lock = Lock();
  lock.images[1].places = {{"c.csv", DigestOfPlaces("x")}, {"d.csv", DigestOfPlaces("")}};
  const auto read = ParseRunLock(LockText(lock), "run.lock");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->images, lock.images);
  EXPECT_EQ(DifferenceOf(Lock(), lock).Summary(), "1 with other positions");
  EXPECT_EQ(DifferenceOf(Lock(), lock).ToJson()["placed"], Json({lock.images[1].Name()}));
  RunLock other = lock;
  other.images[1].places["c.csv"] = DigestOfPlaces("y");
  EXPECT_EQ(DifferenceOf(lock, other).Summary(), "1 with other positions");
  std::string text = LockText(lock);
  text.replace(text.find("\"places\":{\"c.csv\":\"") + 19, 1, "g");
  EXPECT_NE(ParseError(text).find("image 1"), std::string::npos);
}

TEST(RunLock, NamesTheTablesOfPositionsOfEverySplit) {
  const auto config = ParseRunConfig(
      "dataset: t.csv\nsplit_column: fold\npatch: {size: [8, 8]}\naugment: [flip]\n"
      "sampling: {positions: b.csv}\n"
      "splits: {x: {sampling: {positions: a.csv}}, y: {sampling: {order: sequential}}}\n",
      "run.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(PositionTablesOf(*config).value(), (std::vector<std::string>{"a.csv", "b.csv"}));
}

TEST(RunLock, PinsStatedRolesWhereStatisticsAreSummed) {
  const std::string config =
      "dataset: t.csv\nsplit_column: fold\npatch: {size: [8, 8]}\naugment: [flip]\n"
      "splits: {a: {role: train}, b: {role: evaluate}, val: {batch: {tail: pad}}}\n";
  const auto plain = LockedKeysOf(*ParseRunConfig(config, "run.yaml"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->roles.empty());
  RunLock lock = Lock();
  EXPECT_EQ(LockText(lock).find("roles"), std::string::npos);
  for (const char* op : {"stain_normalize: {reference: cohort}", "ct_normalize: {}"}) {
    const auto keys =
        LockedKeysOf(*ParseRunConfig(StrCat(config, "preprocess: [", op, "]\n"), "r"));
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_EQ(keys->roles, (std::map<std::string, std::string>{{"a", "train"}, {"b", "evaluate"}}));
    EXPECT_EQ(DifferingKey(*plain, *keys), "splits (a role)");
    lock.keys = *keys;
    const auto read = ParseRunLock(LockText(lock), "run.lock");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->keys, *keys);
  }
  std::string text = LockText(lock);
  text.replace(text.find("\"evaluate\""), 10, "7");
  EXPECT_NE(ParseError(text).find("key 'roles.b': expected text"), std::string::npos);
}

}  // namespace
}  // namespace patchbay::plan
