#include "workers/functions/function_host.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::workers {
namespace {

using testing::HasSubstr;

constexpr std::size_t kPatches = 4, kSide = 8, kPatchBytes = kSide * kSide * 3;

/// The Python at PATCHBAY_PYTHON, else the project's own.
std::string Python() {
  const char* named = std::getenv("PATCHBAY_PYTHON");
  return named != nullptr ? named : PATCHBAY_SOURCE_DIR "/.venv/bin/python";
}

std::string AttacksFile() {
  return (std::filesystem::path(__FILE__).parent_path() / "attacks.py").string();
}

class OwnFunctions : public testing::Test {
 protected:
  void SetUp() override {
    static const Status started = Start({.function = "threads"}).status();
    if (!started.ok()) GTEST_SKIP() << started << ": needs a Python with NumPy";
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "there") << "unchanged";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  using Process = std::unique_ptr<FunctionHost>;

  StatusOr<Process> Start(plan::OwnFunction function) {
    return StartAll({std::move(function)}, /*is_users_own=*/true);
  }

  StatusOr<Process> StartAll(std::vector<plan::OwnFunction> functions, bool is_users_own) {
    PB_ASSIGN_OR_RETURN(memory_, memory::MemfdBlock::Create("test", 64 << 10));
    PB_ASSIGN_OR_RETURN(const std::string text,
                        ReadFile(Folders::OfThisUser(), AttacksFile(), kMaxFunctionFileBytes));
    std::vector<FunctionSource> sources;
    for (plan::OwnFunction& function : functions) {
      function.key = "augment[1].python";
      function.memory_mib = 512;
      sources.push_back({std::move(function), {AttacksFile(), text, {}}});
    }
    SharedPatches patches{.shape = {kSide, kSide, 3}, .capacity = kPatches, .pixels_at = 0};
    patches.mask_at = kPatches * kPatchBytes;
    return FunctionHost::Start({.interpreter = Python(), .is_users_own = is_users_own},
                               std::move(sources), patches, memory_, {});
  }

  Status Call(const StatusOr<Process>& process, std::vector<std::uint64_t> ordinals = {0}) {
    return (*process)->Call(0, {7, 2, std::move(ordinals)}, {});
  }

  int First(std::size_t patch) const {
    return std::to_integer<int>(memory_.bytes()[patch * kPatchBytes]);
  }
  std::string Bytes(std::size_t patch) const {
    const auto bytes = memory_.bytes().subspan(patch * kPatchBytes, kPatchBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  memory::MemfdBlock memory_;
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / StrCat("functions_", Hex64(RandomU64()));
};

TEST_F(OwnFunctions, NoAttackLeavesTheLimits) {
  std::vector<plan::OwnFunction> attacks;
  for (const char* what :
       {"inet",       "unix",    "pair",        "uring",  "create",   "append",  "change",
        "nameless",   "openat2", "remove",      "rename", "folder",   "link",    "rights",
        "shorten",    "fork",    "vfork",       "clone",  "clone3",   "command", "execute",
        "kill",       "trace",   "read_memory", "pidfd",  "outlive",  "limits",  "limits_of_parent",
        "namespace",  "memfd",   "private",     "shared", "system_v", "grow",    "rewrite",
        "descriptors"}) {
    attacks.push_back(
        {.function = "attack", .options = {{"what", what}, {"path", folder_.string()}}});
  }
  const auto process = StartAll(attacks, /*is_users_own=*/false);
  ASSERT_TRUE(process.ok()) << process.status();
  for (std::size_t i = 0; i < attacks.size(); ++i) {
    SCOPED_TRACE(attacks[i].options["what"]);
    memory_.data()[0] = {};
    const Status called = (*process)->Call(i, {7, 2, {0}}, {});
    ASSERT_TRUE(called.ok()) << called;
    EXPECT_EQ(First(0), 0) << "it was done";
  }
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::ElementsAre("there"));
  std::string text;
  std::ifstream(folder_ / "there") >> text;
  EXPECT_EQ(text, "unchanged");
}

TEST_F(OwnFunctions, MayReadFilesAndStartThreads) {
  const auto process = Start({.function = "threads"});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(Call(process).ok());
  EXPECT_EQ(First(0), 1);
  EXPECT_GT((*process)->cpu_ns(), 0);
  EXPECT_THAT((*process)->versions().python, HasSubstr("3."));
}

TEST_F(OwnFunctions, EndlessOnesEndAtTheirTimeLimit) {
  for (const char* name : {"endless", "asleep"}) {
    const auto process = Start({.function = name, .time_limit_s = 0.3});
    ASSERT_TRUE(process.ok()) << process.status();
    const Status late = Call(process);
    EXPECT_TRUE(absl::IsInvalidArgument(late));
    EXPECT_THAT(std::string(late.message()), HasSubstr("time_limit_s, 0.3 s"));
    EXPECT_FALSE((*process)->alive());
  }
}

TEST_F(OwnFunctions, AnErrorOfTheWaitEndsTheProcess) {
  const auto process = Start({.function = "endless"});
  ASSERT_TRUE(process.ok());
  const Status status = (*process)->Call(0, {7, 2, {0}}, [] { return Cancelled("not wanted"); });
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_FALSE((*process)->alive());
}

TEST_F(OwnFunctions, EndsOfTheProcessAreNamed) {
  const std::pair<const char*, const char*> ends[] = {{"ends", "exit code 3"},
                                                      {"crashes", "signal 11"}};
  for (const auto& [name, how] : ends) {
    const auto process = Start({.function = name});
    ASSERT_TRUE(process.ok());
    const Status ended = Call(process);
    EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
    EXPECT_THAT(std::string(ended.message()), HasSubstr(StrCat("augment[1].python': ", name)));
    EXPECT_THAT(std::string(ended.message()), HasSubstr(how));
  }
}

TEST_F(OwnFunctions, ExceptionsAreTold) {
  const auto process = Start({.function = "raises"});
  ASSERT_TRUE(process.ok());
  const Status raised = Call(process);
  EXPECT_TRUE(absl::IsInvalidArgument(raised));
  EXPECT_THAT(std::string(raised.message()),
              HasSubstr("raises: ValueError: a patch of 0 (attacks.py:"));
  EXPECT_TRUE((*process)->alive()) << "it goes on";
  const auto leaving = Start({.function = "leaves"});
  EXPECT_THAT(std::string(Call(leaving).message()), HasSubstr("SystemExit: bye"));
  const auto shape = Start({.function = "wrong_shape"});
  EXPECT_THAT(std::string(Call(shape).message()), HasSubstr("it returned uint8 of (1, 8, 8, 1)"));
}

TEST_F(OwnFunctions, NumbersDependOnThePatchAlone) {
  const auto process = Start({.function = "draws"});
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(Call(process, {5, 6, 7}).ok());
  const std::string five = Bytes(0), seven = Bytes(2);
  EXPECT_NE(five, seven);
  const auto again = Start({.function = "draws"});
  ASSERT_TRUE(Call(again, {7, 5}).ok());
  EXPECT_EQ(Bytes(0), seven);
  EXPECT_EQ(Bytes(1), five);
  const auto mask = memory_.bytes()[kPatches * kPatchBytes];
  EXPECT_EQ(mask, memory_.bytes()[0]) << "it may change masks";
}

TEST_F(OwnFunctions, RefusedBeforeTheyRun) {
  const auto refused = [this](plan::OwnFunction function) {
    return std::string(Start(std::move(function)).status().message());
  };
  EXPECT_THAT(
      refused({.function = "nobody"}),
      HasSubstr("key 'augment[1].python': nobody: LookupError: attacks.py has no function"));
  EXPECT_THAT(refused({.function = "raises", .options = {{"size", 3}}}),
              HasSubstr("unexpected keyword argument 'size'"));
  std::ofstream(folder_ / "python3") << "#!/bin/sh\nexec python3 \"$@\"\n";
  std::filesystem::permissions(folder_ / "python3", std::filesystem::perms::owner_all);
  const SharedPatches patches{.shape = {kSide, kSide, 3}, .capacity = kPatches, .pixels_at = 0};
  const auto run_by = [&](const std::string& interpreter) {
    const FunctionPolicy policy{.interpreter = interpreter, .is_users_own = true};
    return FunctionHost::Start(policy, {{{.function = "f"}, {"/f.py", "", {}}}}, patches, memory_,
                               {});
  };
  const auto missing = run_by("/nowhere/python3");
  EXPECT_TRUE(absl::IsInvalidArgument(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/nowhere/python3"));
  const auto script = run_by(folder_ / "python3");
  EXPECT_TRUE(absl::IsInvalidArgument(script.status()));
  EXPECT_THAT(
      std::string(script.status().message()),
      HasSubstr("python3 is a script, and own functions start no program: PATCHBAY_PYTHON"));
}

TEST(FunctionPolicy, RunsAnyFileOfItsUserAndListedFilesElsewhere) {
  const std::string file = AttacksFile(),
                    other = std::filesystem::path(file).parent_path() / "function_host_test.cc";
  const PathRights all = PathRights::All();
  const auto none = ReadFunctionFile({}, all, file);
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("run no functions of users"));
  const auto users = FunctionPolicy::FromText(R"({"python":"python3"})");
  ASSERT_TRUE(users.ok());
  EXPECT_TRUE(ReadFunctionFile(*users, all, other).ok());
  EXPECT_FALSE(ReadFunctionFile(*users, {{"/nowhere"}, {}}, other).ok());
  const auto listed =
      FunctionPolicy::FromText(StrCat(R"({"python":"/usr/bin/python3","files":[")", file, "\"]}"));
  ASSERT_TRUE(listed.ok());
  const auto read = ReadFunctionFile(*listed, {}, file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->digest, Sha256Of(read->bytes));
  const auto unlisted = ReadFunctionFile(*listed, all, other);
  EXPECT_THAT(std::string(unlisted.status().message()), HasSubstr("does not list the file"));
  EXPECT_EQ(unlisted.status().message().find(other), std::string::npos);
  for (const char* text : {"{}", R"({"python":""})", R"({"python":"p","files":[1]})", "no json"}) {
    EXPECT_FALSE(FunctionPolicy::FromText(text).ok()) << text;
  }
}

}  // namespace
}  // namespace patchbay::workers
