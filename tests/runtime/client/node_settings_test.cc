// The command line of a node's processes has every setting, and no more.
#include "runtime/client/node_settings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

using ::testing::ElementsAreArray;

class SupervisorCommandTest : public ::testing::Test {
 protected:
  SupervisorCommandTest() {
    settings_.programs = (std::filesystem::temp_directory_path() / Hex64(RandomU64())).string();
    std::filesystem::create_directories(settings_.programs);
    for (const char* name : {"supervisor", "agent", "scheduler"}) {
      std::ofstream(Program(name)) << "x";
      std::filesystem::permissions(Program(name), std::filesystem::perms::owner_all);
    }
    settings_.node_key = "n.key";
    settings_.state = "state";
  }
  ~SupervisorCommandTest() override { std::filesystem::remove_all(settings_.programs); }

  std::string Program(std::string_view name) const {
    return StrCat(settings_.programs, "/patchbay-", name);
  }

  NodeSettings settings_;
};

TEST_F(SupervisorCommandTest, OfAFurtherNodeStartsItsAgentAlone) {
  const auto words = SupervisorCommand(settings_);
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words,
              ElementsAreArray({Program("supervisor"), std::string("--stop-ms"),
                                std::string("20000"), std::string("--child"), std::string("agent"),
                                Program("agent"), std::string("--key"), std::string("n.key"),
                                std::string("--cpus"), std::string("1"), std::string("--gpus"),
                                std::string("auto"), std::string("--state"), std::string("state"),
                                std::string("--drain-ms"), std::string("18000")}));
}

TEST_F(SupervisorCommandTest, OfAFirstNodeHasWhatItsSchedulerAndAgentWereGiven) {
  settings_.scheduler = SchedulerSettings{"home", "journal", "tcp://0.0.0.0:7678", true};
  settings_.scheduler->metrics = "9178";
  settings_.scheduler->tls = "own.pem";
  settings_.scheduler->metrics_token = "token";
  settings_.memory_bytes = 77;
  settings_.stop_ms = 5'000;
  settings_.network.policy = data::NetworkPolicy::kRdma;
  settings_.network.address = "10.0.0.1";
  const auto words = SupervisorCommand(settings_);
  ASSERT_TRUE(words.ok()) << words.status();
  const auto said = [&](const std::vector<std::string>& run) {
    return std::search(words->begin(), words->end(), run.begin(), run.end()) != words->end();
  };
  EXPECT_TRUE(said({Program("scheduler"), "--home", "home", "--state", "journal", "--listen",
                    "tcp://0.0.0.0:7678", "--grace-ms", "5000", "--allow-public", "--metrics",
                    "9178", "--tls", "own.pem", "--metrics-token", "token", "--child", "agent"}));
  EXPECT_TRUE(said({"--drain-ms", "4500"}));
  EXPECT_TRUE(said({"--memory", "77", "--data-policy", "rdma", "--data-address", "10.0.0.1"}));
  settings_.scheduler->allow_public = false;
  EXPECT_THAT(*SupervisorCommand(settings_), ::testing::Not(::testing::Contains("--allow-public")));
}

}  // namespace
}  // namespace patchbay::client
