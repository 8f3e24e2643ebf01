// The address that a trainer listens on: TLS at its own address unless something else was declared.
#include "runtime/client/network.h"

#include <filesystem>

#include <stdlib.h>

#include "gtest/gtest.h"
#include "runtime/core/hash.h"
#include "runtime/os/file.h"

namespace patchbay::client {
namespace {

constexpr const char* kCluster = "tcp://127.0.0.1:7678";

class TrainerNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "patchbay-test-XXXXXX";
    environment_.home = mkdtemp(pattern.data());
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(environment_.home, ignored);
  }
  void Declare(std::string_view policy) const {
    ASSERT_TRUE(
        WriteFileDurably(Folders::OfThisUser(), PolicyPath(environment_), AsBytes(policy), 0600)
            .ok());
  }
  StatusOr<data::Network> Of(const TrainerListening& listening,
                             const std::string& cluster = kCluster) const {
    return TrainerNetwork(environment_, listening, cluster);
  }
  Environment environment_;
};

TEST_F(TrainerNetworkTest, IsTlsAtTheAddressTowardsTheClusterWithNothingDeclared) {
  const auto network = Of({});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->policy, data::NetworkPolicy::kTls);
  EXPECT_EQ(network->address, "127.0.0.1");
  EXPECT_FALSE(network->is_named);
}

TEST_F(TrainerNetworkTest, IsNoneWhereTheClusterIsOfThisMachine) {
  const auto network = Of({}, "ipc://@patchbay-test");
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->policy, data::NetworkPolicy::kNone);
}

TEST_F(TrainerNetworkTest, TakesTheDeclaredPolicyUnlessOneIsGiven) {
  Declare("rdma");
  EXPECT_EQ(Of({})->policy, data::NetworkPolicy::kRdma);
  EXPECT_EQ(Of({"tls", "", ""})->policy, data::NetworkPolicy::kTls);
}

TEST_F(TrainerNetworkTest, NamesThePolicyItDoesNotKnowAndWhereItStands) {
  EXPECT_TRUE(absl::IsInvalidArgument(Of({"wireguard", "", ""}).status()));
  Declare("isolated-tcp");
  const Status refused = Of({}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_NE(refused.message().find("isolated-tcp"), std::string::npos) << refused;
  EXPECT_NE(refused.message().find(PolicyPath(environment_)), std::string::npos) << refused;
}

TEST_F(TrainerNetworkTest, ListensWhereTheUserSaysIfThatIsHere) {
  const auto network = Of({"", "127.0.0.1", "7800-7810"});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_TRUE(network->is_named);
  EXPECT_EQ(network->ports, (PortRange{7800, 7810}));
  for (const char* address : {"10.255.254.253", "trainer", "127.0.0.1:80"}) {
    const Status refused = Of({"", address, ""}).status();
    EXPECT_FALSE(refused.ok()) << address;
    EXPECT_NE(refused.message().find("--data-listen"), std::string::npos) << refused;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Of({"", "", "7810-7800"}).status()));
}

}  // namespace
}  // namespace patchbay::client
