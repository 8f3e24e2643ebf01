// Heads of HTTP requests, good and bad.
#include "scheduler/http/http_request.h"

#include <string>

#include <gtest/gtest.h>

namespace patchbay::scheduler {
namespace {

std::optional<HttpRequest> Parsed(const std::string& head) {
  static std::string kept;  // requests are views
  kept = head;
  return ParseRequest(kept);
}

TEST(RequestHead, SaysWhatThePagesAskFor) {
  const auto request = Parsed(
      "POST /login?from=here HTTP/1.1\r\nhost: pages.example:9179\r\nX-PATCHBAY: 1\r\n"
      "Cookie: a=b; patchbay_session=c0ffee; d=e\r\nAuthorization:Bearer  0123 \r\n\r\n");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->path, "/login");
  EXPECT_EQ(request->host, "pages.example");
  EXPECT_EQ(request->session, "c0ffee");
  EXPECT_EQ(request->token, "0123");
  EXPECT_TRUE(request->from_own_page);
  EXPECT_EQ(Parsed("GET / HTTP/1.1\r\nHost: [fd00::7]:9179\r\n\r\n")->host, "fd00::7");
  const auto bare = Parsed("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ(bare->host, "");
  EXPECT_EQ(bare->session, "");
  EXPECT_FALSE(bare->from_own_page);
}

TEST(RequestHead, AnotherMayFollowUnlessItHasABodyOrTheReaderLeaves) {
  for (const std::string header : {"", "Connection: keep-alive\r\n", "Content-Length: 0\r\n"}) {
    EXPECT_TRUE(Parsed("GET / HTTP/1.1\r\n" + header + "\r\n")->may_continue) << header;
    EXPECT_FALSE(Parsed("GET / HTTP/1.0\r\n" + header + "\r\n")->may_continue) << header;
  }
  for (const std::string header :
       {"Connection: close", "connection: Keep-Alive, close", "Content-Length: 1",
        "Content-Length: 00", "Transfer-Encoding: chunked"}) {
    EXPECT_FALSE(Parsed("GET / HTTP/1.1\r\n" + header + "\r\n\r\n")->may_continue) << header;
  }
}

TEST(RequestHead, OtherValuesAreNoSessionAndNoToken) {
  for (const std::string header :
       {"Cookie: xpatchbay_session=c0ffee", "Cookie: patchbay_session", "Cookie: ;=;",
        "Authorization: Basic 0123", "Authorization: Bearer", "Authorization: Bearer0123",
        "X-Authorization: Bearer 0123"}) {
    const auto request = Parsed("GET / HTTP/1.1\r\n" + header + "\r\n\r\n");
    ASSERT_TRUE(request.has_value()) << header;
    EXPECT_EQ(request->session, "") << header;
    EXPECT_EQ(request->token, "") << header;
  }
}

TEST(RequestHead, MalformedOnesAreRefused) {
  for (const std::string head :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.1 \r\n\r\n", " GET / HTTP/1.1\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
        "GET http://localhost/ HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\n\n", "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n", "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", "GET / HTTP/1.1\r\nA: b\x7F\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"}) {
    EXPECT_FALSE(Parsed(head).has_value()) << head;
  }
}

}  // namespace
}  // namespace patchbay::scheduler
