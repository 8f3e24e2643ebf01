// The key behind the names of stores, when several commands want the first one at once.
#include "runtime/cli/keys/pseudonym_key.h"

#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

TEST(PseudonymKey, CommandsThatStartAtOnceAgreeOnTheFirstKey) {
  constexpr std::size_t kCommands = 8;
  for (int round = 0; round < 30; ++round) {
    client::Environment environment;
    environment.home =
        (fs::canonical(fs::temp_directory_path()) / ("pseudonym_" + Hex64(RandomU64()))).string();
    ASSERT_TRUE(fs::create_directory(environment.home));
    fs::permissions(environment.home, fs::perms::owner_all);
    std::vector<std::string> keys(kCommands);
    {
      std::vector<std::jthread> commands;
      for (std::string& key : keys) {
        commands.emplace_back([&] { key = PseudonymKey(environment).value_or("none"); });
      }
    }
    const std::string kept = PseudonymKey(environment).value_or("lost");
    EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()), std::set<std::string>{kept});
    int files = 0;
    for (const auto& entry : fs::directory_iterator(environment.home)) {
      files += entry.path().filename().string().rfind("pseudonym.key", 0) == 0 ? 1 : 0;
    }
    EXPECT_EQ(files, 1);
    fs::remove_all(environment.home);
  }
}

TEST(PseudonymKey, AnotherOneIsImportedOnlyWhereItIsAskedForTwice) {
  const fs::path folder =
      fs::canonical(fs::temp_directory_path()) / ("pseudonym_" + Hex64(RandomU64()));
  client::Environment ours, theirs;
  ours.home = folder / "ours";
  theirs.home = folder / "theirs";
  for (const auto& home : {ours.home, theirs.home}) {
    fs::create_directories(home);
    fs::permissions(home, fs::perms::owner_all);
  }
  const std::string key = PseudonymKey(ours).value_or("none");
  const std::string file = (folder / "key.txt").string();
  ASSERT_TRUE(ExportPseudonymKey(theirs, file).ok());
  EXPECT_EQ(ExportPseudonymKey(theirs, file).code(), absl::StatusCode::kAlreadyExists);
  const Status refused = ImportPseudonymKey(ours, file, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(MessageOf(refused).find("--force"), std::string_view::npos) << refused;
  EXPECT_EQ(PseudonymKey(ours).value_or("none"), key);
  EXPECT_TRUE(ImportPseudonymKey(theirs, file, false).ok()) << "its own one";
  EXPECT_TRUE(ImportPseudonymKey(ours, file, true).ok());
  EXPECT_EQ(PseudonymKey(ours).value_or("none"), PseudonymKey(theirs).value_or("other"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace patchbay::cli
