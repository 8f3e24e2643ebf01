#include "runtime/wire/data/network_policy.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "runtime/wire/data/ucx_worker.h"

namespace patchbay::data {
namespace {

Network NetworkOfPolicy(NetworkPolicy policy, const std::string& address = "127.0.0.1") {
  Network network;
  network.policy = policy;
  network.address = address;
  return network;
}

TEST(LoadUcxDeathTest, TurnsItsMemoryHooksOffUnlessTheUserDecided) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto loaded = [](const char* before) {
    unsetenv("UCX_MEM_MMAP_HOOK_MODE");
    if (before != nullptr) setenv("UCX_MEM_MMAP_HOOK_MODE", before, 1);
    (void)LoadUcx();
    const char* const after = std::getenv("UCX_MEM_MMAP_HOOK_MODE");
    std::fprintf(stderr, "hooks %s\n", after == nullptr ? "unset" : after);
    std::_Exit(0);
  };
  EXPECT_EXIT(loaded(nullptr), ::testing::ExitedWithCode(0), "hooks none");
  EXPECT_EXIT(loaded("bistro"), ::testing::ExitedWithCode(0), "hooks bistro");
}

TEST(NetworkPolicy, HasTheTwoNamesOfTheFlag) {
  for (const char* name : {"tls", "rdma"}) {
    const auto policy = NetworkPolicyFromName(name);
    ASSERT_TRUE(policy.has_value()) << name;
    EXPECT_EQ(NameOf(*policy), name);
  }
  for (const char* name : {"tcp", "", "none", "isolated-tcp", "wireguard"}) {
    EXPECT_FALSE(NetworkPolicyFromName(name).has_value()) << name;
  }
}

TEST(NetworkPolicy, UcxServesRdmaAlone) {
  for (const NetworkPolicy policy : {NetworkPolicy::kNone, NetworkPolicy::kTls}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(LimitsOf(NetworkOfPolicy(policy)).status()));
  }
}

/// Libraries of UCX that this process has mapped.
bool HasUcx() {
  std::ifstream maps("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(maps), {}};
  return text.find("/libuc") != std::string::npos;
}

/// Exits with 0 when UCX comes in with the first worker of a fabric, not before.
[[noreturn]] void OpenAWorkerAndExit() {
  if (HasUcx()) std::exit(1);
  Network stand_in = NetworkOfPolicy(NetworkPolicy::kRdma);
  stand_in.rdma_over_tcp = true;
  const auto worker = UcxWorker::Open(stand_in);
  std::exit(worker.ok() && HasUcx() ? 0 : 2);
}

TEST(NetworkPolicy, UcxIsLoadedByTheFirstThatUsesAFabric) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process of its own
  EXPECT_EXIT(OpenAWorkerAndExit(), ::testing::ExitedWithCode(0), "");
}

TEST(NetworkPolicy, RdmaNeedsADeviceBehindAPrivateAddressOfThisNode) {
  EXPECT_TRUE(absl::IsFailedPrecondition(LimitsOf(NetworkOfPolicy(NetworkPolicy::kRdma)).status()));
  Network stand_in = NetworkOfPolicy(NetworkPolicy::kRdma);
  stand_in.rdma_over_tcp = true;
  const auto limits = LimitsOf(stand_in);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_EQ(limits->transports, "tcp");
  EXPECT_EQ(limits->devices, "lo");
  for (const char* address : {"8.8.8.8", "", "trainer", "10.0.0.7:80"}) {
    stand_in.address = address;
    EXPECT_TRUE(absl::IsFailedPrecondition(LimitsOf(stand_in).status())) << address;
  }
  stand_in.address = "10.255.254.253";
  EXPECT_TRUE(absl::IsNotFound(LimitsOf(stand_in).status()));
}

TEST(NetworkPolicy, ATrainerListensAtPrivateAddressesAndAtPublicOnesThatWereNamed) {
  for (const char* address : {"127.0.0.1", "10.0.0.7", "::1", "fd00::7"}) {
    EXPECT_TRUE(CheckNetwork(NetworkOfPolicy(NetworkPolicy::kTls, address)).ok()) << address;
  }
  Network open = NetworkOfPolicy(NetworkPolicy::kTls, "8.8.8.8");
  const Status refused = CheckNetwork(open);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_NE(refused.message().find("--data-listen"), std::string::npos) << refused;
  open.is_named = true;
  EXPECT_TRUE(CheckNetwork(open).ok());
  for (const char* address : {"0.0.0.0", "::", "", "trainer", "10.0.0.7:80"}) {
    open.address = address;
    EXPECT_TRUE(absl::IsFailedPrecondition(CheckNetwork(open))) << address;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckNetwork(NetworkOfPolicy(NetworkPolicy::kNone))));
}

TEST(PortRange, IsTwoNumbersThatRunForwards) {
  EXPECT_EQ(*ParsePortRange(""), (PortRange{0, 0}));
  EXPECT_EQ(*ParsePortRange("7800-7899"), (PortRange{7800, 7899}));
  EXPECT_EQ(*ParsePortRange("7800"), (PortRange{7800, 7800}));
  for (const char* text : {"0", "0-5", "7900-7800", "7800-", "-7800", "7800-70000", "a-b",
                           "7800 - 7900", "7800-7900-8000", "+1-5"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParsePortRange(text).status())) << text;
  }
}

TEST(NetworkPolicy, KnowsPrivateAddresses) {
  for (const char* address :
       {"127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.7.7", "100.64.0.1",
        "169.254.1.1", "::1", "fd00::1", "fe80::1"}) {
    EXPECT_TRUE(IsPrivateAddress(address)) << address;
  }
  for (const char* address :
       {"8.8.8.8", "11.0.0.1", "172.15.255.255", "172.32.0.1", "192.169.0.1", "100.63.255.255",
        "100.128.0.1", "169.255.0.1", "2001:db8::1", "::", "trainer"}) {
    EXPECT_FALSE(IsPrivateAddress(address)) << address;
  }
}

}  // namespace
}  // namespace patchbay::data
