// A server and its peers on one event loop, so that a test needs no threads and no waiting.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <zmq.hpp>

#include "runtime/core/hash.h"
#include "runtime/wire/control/server_socket.h"
#include "runtime/wire/control/session.h"
#include "runtime/wire/protocol/codec.h"

namespace patchbay::control {

inline constexpr TimeMs kPatienceMs = 20'000;

/// A message that arrived at the server.
struct Received {
  Peer peer;
  std::string bytes;
};

class ControlFixture : public testing::Test {
 protected:
  ControlFixture() : loop_(*EventLoop::Open()), server_pair_(KeyPair::Generate()) {}
  ~ControlFixture() override { server_.reset(); }

  /// A key of the table; call before StartServer or ReplaceKeys.
  KeyFile MakeKey(const std::string& name, Role role = Role::kSubmitter) {
    KeyFile key{.name = name,
                .role = role,
                .address = address_,
                .server_key = server_pair_.public_key,
                .pair = KeyPair::Generate(),
                .read = {},
                .write = {}};
    known_.push_back({.name = name, .role = role, .public_key = key.pair.public_key});
    return key;
  }

  AuthorizedKeys Table() { return *AuthorizedKeys::Of(known_); }

  void StartServer(std::uint64_t unread_bytes_max = ServerSocket::Options().unread_bytes_max,
                   std::uint32_t peers_max = ServerSocket::Options().peers_max) {
    auto server =
        ServerSocket::Bind(*loop_,
                           {.address = address_,
                            .pair = server_pair_,
                            .peers_max = peers_max,
                            .unread_bytes_max = unread_bytes_max},
                           Table(),
                           {.on_message =
                                [this](const Peer& peer, std::span<const std::byte> bytes) {
                                  received_.push_back({peer, std::string(AsText(bytes))});
                                  if (answer_) answer_(peer, bytes);
                                },
                            .on_gone = [this](PeerId peer) { gone_.push_back(peer); }});
    ASSERT_TRUE(server.ok()) << Describe(server.status());
    server_ = *std::move(server);
    address_ = server_->address();
  }

  /// Answers every request with HeartbeatSeen.
  void AnswerEverything() {
    answer_ = [this](const Peer& peer, std::span<const std::byte> bytes) {
      const auto message = protocol::Decode(bytes);
      if (!message.ok() || message->request_id == 0) return;
      const auto reply =
          protocol::Encode({.request_id = message->request_id, .body = protocol::HeartbeatSeen{7}});
      EXPECT_TRUE(server_->Send(peer.id, AsBytes(*reply)).ok());
    };
  }

  std::unique_ptr<Session> Open(KeyFile key, Session::Callbacks callbacks = {}) {
    key.address = address_;
    auto session = Session::Open(*loop_, key, std::move(callbacks));
    EXPECT_TRUE(session.ok()) << Describe(session.status());
    return *std::move(session);
  }

  bool Wait(const std::function<bool()>& done) { return loop_->RunUntil(done, kPatienceMs); }

  /// The answer of one request, or its error.
  StatusOr<protocol::Body> Ask(Session& session, protocol::Body body,
                               TimeMs timeout_ms = kPatienceMs) {
    StatusOr<protocol::Body> answer = absl::UnknownError("no answer");
    bool done = false;
    session.Request(std::move(body), timeout_ms, [&](StatusOr<protocol::Body> result) {
      answer = std::move(result);
      done = true;
    });
    Wait([&] { return done; });
    return answer;
  }

  /// A DEALER that the test controls completely.
  zmq::socket_t RawDealer(const std::string& routing_id = "") {
    zmq::socket_t socket(raw_context_, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    if (!routing_id.empty()) socket.set(zmq::sockopt::routing_id, routing_id);
    return socket;
  }
  zmq::socket_t RawCurveDealer(const KeyFile& key, const std::string& routing_id = "") {
    zmq::socket_t socket = RawDealer(routing_id);
    socket.set(zmq::sockopt::curve_serverkey, server_pair_.public_key);
    socket.set(zmq::sockopt::curve_publickey, key.pair.public_key);
    socket.set(zmq::sockopt::curve_secretkey, key.pair.secret_key);
    return socket;
  }

  std::unique_ptr<EventLoop> loop_;
  KeyPair server_pair_;
  std::string address_ = "tcp://127.0.0.1:*";
  std::vector<KnownKey> known_;
  std::unique_ptr<ServerSocket> server_;
  std::vector<Received> received_;
  std::vector<PeerId> gone_;
  std::function<void(const Peer&, std::span<const std::byte>)> answer_;
  zmq::context_t raw_context_{1};
};

}  // namespace patchbay::control
