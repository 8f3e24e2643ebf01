// Addresses and sockets below delivery.
#include <array>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "gtest/gtest.h"
#include "runtime/wire/data/sockets.h"
#include "tests/runtime/wire/data/stream_fixture.h"

namespace patchbay::data {
namespace {

using namespace testing;  // NOLINT: the fixture of this folder

TEST(SocketAddress, ComesBackAsItWasWritten) {
  for (const char* text : {"10.0.0.7:4711", "0.0.0.0:0", "127.0.0.1:65535", "[::1]:80"}) {
    const auto address = ParseSocketAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(FormatSocketAddress(*address), text);
  }
}

TEST(SocketAddress, WithoutANumericHostOrAPortIsRefused) {
  for (const char* text :
       {"", ":", "10.0.0.7", "10.0.0.7:", "[::1]:", "10.0.0.7:65536", "10.0.0.7:99999999999",
        "10.0.0.7:-1", "10.0.0.7:80x", "trainer:80", "10.0.0:80", "[10.0.0.7]:80"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSocketAddress(text).status())) << text;
  }
}

TEST(TcpSocket, SaysThatNobodyListens) {
  std::string address;
  ListenTcp("127.0.0.1", {}, &address).status().IgnoreError();  // closed at once
  const auto socket = ConnectTcp(address, SteadyNowMs() + kPatience);
  EXPECT_TRUE(absl::IsUnavailable(socket.status())) << socket.status();
  EXPECT_NE(MessageOf(socket.status()).find("refused"), std::string_view::npos) << socket.status();
}

TEST(UnixSocket, AMessageLongerThanTheBufferIsRefusedAndTheNextIsRead) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
  const UniqueFd ours(ends[0]), theirs(ends[1]);
  std::array<std::byte, 16> buffer{};
  for (const std::size_t size : {buffer.size(), buffer.size() + 1, std::size_t{1}}) {
    ASSERT_TRUE(SendMessage(ours.get(), std::vector<std::byte>(size)).ok());
    const auto got = ReceiveMessage(theirs.get(), buffer);
    EXPECT_EQ(absl::IsInvalidArgument(got.status()), size > buffer.size()) << size;
    if (got.ok()) EXPECT_EQ(*got, size);
  }
}

}  // namespace
}  // namespace patchbay::data
