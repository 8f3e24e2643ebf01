#include "runtime/data/network_policy.h"

#include "gtest/gtest.h"

namespace patchbay::data {
namespace {

TEST(NetworkPolicy, HasTheThreeNamesOfTheConfig) {
  for (const char* name : {"rdma", "isolated-tcp", "wireguard"}) {
    const auto policy = NetworkPolicyFromName(name);
    ASSERT_TRUE(policy.has_value());
    EXPECT_EQ(NameOf(*policy), name);
  }
  EXPECT_FALSE(NetworkPolicyFromName("tcp").has_value());
  EXPECT_FALSE(NetworkPolicyFromName("").has_value());
  EXPECT_FALSE(NetworkPolicyFromName("none").has_value()) << "nobody declares nothing";
}

TEST(NetworkPolicy, WithoutADeclarationNothingIsAllowed) {
  EXPECT_TRUE(absl::IsFailedPrecondition(LimitsOf({NetworkPolicy::kNone, "127.0.0.1"}).status()));
}

TEST(NetworkPolicy, NamesTransportAndInterface) {
  const auto limits = LimitsOf({NetworkPolicy::kIsolatedTcp, "127.0.0.1"});
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->transports, "tcp");
  EXPECT_EQ(limits->devices, "lo");
}

TEST(NetworkPolicy, RefusesInterfacesThatAreNotWhatWasDeclared) {
  EXPECT_TRUE(
      absl::IsFailedPrecondition(LimitsOf({NetworkPolicy::kWireGuard, "127.0.0.1"}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(LimitsOf({NetworkPolicy::kRdma, "127.0.0.1"}).status()));
}

TEST(NetworkPolicy, RefusesPublicMissingAndMalformedAddresses) {
  for (const char* address : {"8.8.8.8", "0.0.0.0", "", "localhost", "2001:db8::1", "172.32.0.1"}) {
    EXPECT_TRUE(
        absl::IsFailedPrecondition(LimitsOf({NetworkPolicy::kIsolatedTcp, address}).status()))
        << address;
  }
  EXPECT_TRUE(absl::IsNotFound(LimitsOf({NetworkPolicy::kIsolatedTcp, "10.255.254.253"}).status()));
}

TEST(NetworkPolicy, KnowsPrivateAddresses) {
  for (const char* address :
       {"127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.7.7", "100.64.0.1",
        "169.254.1.1", "::1", "fd00::1", "fe80::1"}) {
    EXPECT_TRUE(IsPrivateAddress(address)) << address;
  }
}

}  // namespace
}  // namespace patchbay::data
