// The page of metrics over HTTP, with requests of all kinds.
#include "scheduler/metrics/metrics_listener.h"

#include <random>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"

namespace patchbay::scheduler {
namespace {

class MetricsPage : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = MetricsListener::Open({"127.0.0.1:*"});
    ASSERT_TRUE(opened.ok()) << opened.status();
    listener = *std::move(opened);
    port = PortOf(*listener);
  }

  static std::uint16_t PortOf(const MetricsListener& listener) {
    const std::string& url = listener.url();
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }

  UniqueFd Connected() const {
    UniqueFd connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int failed =
        connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    EXPECT_EQ(failed, 0);
    return connection;
  }
  /// Everything that the listener answers until it closes the connection.
  std::string Ask(const std::string& request) const {
    const UniqueFd connection = Connected();
    send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL);
    shutdown(connection.get(), SHUT_WR);
    std::string answer;
    char buffer[4096];
    for (ssize_t got; (got = read(connection.get(), buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    return answer;
  }
  std::string Get(const std::string& path, const std::string& host) const {
    return Ask(StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
  }
  static std::string StatusIn(const std::string& answer) { return answer.substr(0, 12); }

  std::unique_ptr<MetricsListener> listener;
  std::uint16_t port = 0;
};

TEST_F(MetricsPage, ShowsTheSampleThatWasPublishedLast) {
  Sample sample;
  sample.clock_seconds = 1234;
  listener->Publish(std::move(sample));
  const std::string answer = Get("/metrics", StrCat("127.0.0.1:", port));
  EXPECT_EQ(StatusIn(answer), "HTTP/1.1 200");
  EXPECT_NE(answer.find("\r\nContent-Type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(answer.find("\npatchbay_scheduler_clock_seconds 1234\n"), std::string::npos);
  sample.clock_seconds = 1235;
  listener->Publish(std::move(sample));
  EXPECT_NE(Get("/metrics", "localhost").find("clock_seconds 1235\n"), std::string::npos);
}

TEST_F(MetricsPage, RefusesForeignHostsOtherPathsAndOtherMethods) {
  for (const std::string host :
       {"evil.example", "10.0.0.7", "127.evil.example", "localhost.evil.example"}) {
    EXPECT_EQ(StatusIn(Get("/metrics", host)), "HTTP/1.1 403") << host;
  }
  EXPECT_EQ(StatusIn(Ask("GET /metrics HTTP/1.0\r\n\r\n")), "HTTP/1.1 403") << "no host at all";
  EXPECT_EQ(StatusIn(Get("/metrics", "[::1]:1")), "HTTP/1.1 200");
  for (const std::string path : {"/", "/metrics/x", "/../../etc/passwd", "/%2e%2e/etc/passwd"}) {
    EXPECT_EQ(StatusIn(Get(path, "localhost")), "HTTP/1.1 404") << path;
  }
  EXPECT_EQ(StatusIn(Ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")),
            "HTTP/1.1 405");
}

TEST_F(MetricsPage, KeepsAConnectionForTheNextRequest) {
  listener->Publish({});
  const UniqueFd kept = Connected();
  timeval limit{10, 0};
  setsockopt(kept.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  const auto ask = [&](const std::string& more) {
    const std::string request = StrCat("GET /x HTTP/1.1\r\nHost: localhost\r\n", more, "\r\n");
    send(kept.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char byte = 0;
    while (!answer.ends_with("\r\n\r\n") && read(kept.get(), &byte, 1) == 1) answer += byte;
    return answer;
  };
  for (int i = 0; i < 3; ++i) {
    const std::string answer = ask("");
    EXPECT_EQ(StatusIn(answer), "HTTP/1.1 404");
    EXPECT_NE(answer.find("\r\nConnection: keep-alive\r\n"), std::string::npos);
  }
  EXPECT_NE(ask("Connection: close\r\n").find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(ask(""), "") << "it is closed";
}

TEST_F(MetricsPage, WhatFollowsARequestAtOnceIsNoRequest) {
  const std::string get = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(Ask(get + get).find("HTTP/1.1", 1), std::string::npos);
  const std::string body = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n";
  EXPECT_EQ(Ask(body + get).find("HTTP/1.1", 1), std::string::npos);
}

TEST_F(MetricsPage, MoreConnectionsThanAreKeptHinderNobody) {
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 300; ++i) {
    waiting.push_back(Connected());
    const std::string request = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send(waiting.back().get(), request.data(), request.size(), MSG_NOSIGNAL);
    char part[4096];
    EXPECT_GT(read(waiting.back().get(), part, sizeof(part)), 0) << i;
  }
  EXPECT_EQ(StatusIn(Get("/x", "localhost")), "HTTP/1.1 404");
}

TEST_F(MetricsPage, OutlivesMalformedRequests) {
  std::mt19937 random(7);
  const std::string good = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nA: b\r\n\r\n";
  for (int i = 0; i < 300; ++i) {
    std::string request = good;
    for (int flips = 1 + i % 8; flips > 0; --flips) {
      request[random() % request.size()] = static_cast<char>(random());
    }
    if (i % 5 == 0) request.resize(random() % request.size());
    if (i % 50 == 0) request.insert(4, std::string(100'000, 'a'));
    Ask(request);
  }
  EXPECT_EQ(StatusIn(Ask(good)), "HTTP/1.1 200");
}

TEST_F(MetricsPage, OfATokenIsForReadersThatShowIt) {
  const std::string path = StrCat(testing::TempDir(), "patchbay-token-", getpid());
  const auto with = [&](const std::string& text, mode_t mode) {
    EXPECT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text), mode).ok());
    return MetricsListener::Open({"127.0.0.1:*", "", path});
  };
  EXPECT_EQ(with("0123456789abcdef\n", 0644).status().code(), absl::StatusCode::kPermissionDenied);
  for (const std::string bad : {"", "0123456789abcde\n", "0123456789abcdef 0123456789abcdef"}) {
    EXPECT_THAT(MessageOf(with(bad, 0600).status()), testing::HasSubstr("16 or more characters"));
  }
  auto opened = with("0123456789abcdef\n", 0600);
  ASSERT_TRUE(opened.ok()) << opened.status();
  port = PortOf(**opened);
  for (const std::string token :
       {"", "Authorization: Bearer 0123456789abcdeF\r\n",
        "Authorization: Basic 0123456789abcdef\r\n", "Authorization: Bearer\r\n"}) {
    EXPECT_EQ(StatusIn(Get("/metrics", StrCat("localhost\r\n", token, "A: b"))), "HTTP/1.1 401")
        << token;
  }
  EXPECT_EQ(StatusIn(Get("/metrics", "localhost\r\nauthorization:  bearer 0123456789abcdef ")),
            "HTTP/1.1 200");
  unlink(path.c_str());
}

TEST_F(MetricsPage, IsForOneListenerAPort) {
  const auto second = MetricsListener::Open({StrCat(port)});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(MessageOf(second.status()).find(StrCat("127.0.0.1:", port)), std::string::npos);
  EXPECT_NE(MessageOf(second.status()).find("in use"), std::string::npos) << second.status();
}

TEST(MetricsPlace, IsOnLoopbackWithoutACertificateAndAToken) {
  const auto refusal = [](const MetricsListener::Options& options) {
    const auto opened = MetricsListener::Open(options);
    return opened.ok() ? "" : std::string(MessageOf(opened.status()));
  };
  for (const std::string place : {"10.0.0.7:9178", "0.0.0.0:9178", "[::]:9178", "8.8.8.8:1"}) {
    EXPECT_THAT(refusal({place}), testing::HasSubstr("without --tls FILE"));
    EXPECT_THAT(refusal({place, "f.pem"}), testing::HasSubstr("without --metrics-token FILE"));
    EXPECT_THAT(refusal({place, "", "token"}), testing::HasSubstr("without --tls FILE"));
  }
  for (const std::string place : {"", "x", "-1", "70000", "127.0.0.1", "localhost:1", ":1"}) {
    const auto opened = MetricsListener::Open({place});
    ASSERT_FALSE(opened.ok()) << place;
    EXPECT_NE(MessageOf(opened.status()).find("[ADDR:]PORT"), std::string::npos) << place;
  }
}

}  // namespace
}  // namespace patchbay::scheduler
