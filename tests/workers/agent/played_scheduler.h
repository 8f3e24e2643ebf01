// A scheduler that a test plays: a real socket with real keys, and answers the test decides. The
// real core gives most of them only in a race (a refusal on request, an outcome that is never
// answered, a kill of a worker that is not there, a fact of another incarnation), so these tests of
// agent and worker cannot use in_process_scheduler.h.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/hash.h"
#include "runtime/wire/control/authorized_keys.h"
#include "runtime/wire/control/event_loop.h"
#include "runtime/wire/control/keys.h"
#include "runtime/wire/control/server_socket.h"
#include "runtime/wire/protocol/codec.h"
#include "runtime/wire/protocol/messages.h"

namespace patchbay::workers {

inline constexpr TimeMs kPatience = 30'000;

/// Lives in the test's thread: its loop runs only while the test waits for something.
class PlayedScheduler {
 public:
  PlayedScheduler() {
    folder_ = std::filesystem::temp_directory_path() / ("played_" + Hex64(RandomU64()));
    std::filesystem::create_directories(folder_);
    address_ = StrCat("ipc://@played-", Hex64(RandomU64()));
    control::KnownKey known;
    known.name = "node";
    known.role = control::Role::kWorker;
    known.public_key = node_.public_key;
    table_ = *control::AuthorizedKeys::Of({known});
    control::KeyFile file;
    file.name = "node";
    file.role = control::Role::kWorker;
    file.address = address_;
    file.server_key = server_.public_key;
    file.pair = node_;
    file.read = file.write = {"/"};
    EXPECT_TRUE(control::WriteKeyFile(key_path(), file).ok());
    Open();
  }
  ~PlayedScheduler() {
    socket_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  std::string key_path() const { return (folder_ / "node.key").string(); }

  /// Takes the socket away and binds a new one, as a restart does; the incarnation rises.
  void Restart() {
    socket_ = nullptr;
    received_.clear();
    requests_.clear();
    ++incarnation;
    Open();
  }

  /// The next message of that kind, however many others come first (they stay).
  template <typename Message>
  std::pair<control::PeerId, Message> Expect() {
    std::optional<std::pair<control::PeerId, Message>> found;
    EXPECT_TRUE(RunUntil([&] { return (found = Take<Message>()).has_value(); }))
        << "the message did not come";
    return found.value_or(std::pair<control::PeerId, Message>());
  }
  /// The same, of those that are here.
  template <typename Message>
  std::optional<std::pair<control::PeerId, Message>> Take() {
    for (auto it = received_.begin(); it != received_.end(); ++it) {
      auto* const message = std::get_if<Message>(&it->second.body);
      if (message == nullptr) continue;
      std::pair<control::PeerId, Message> found{it->first, std::move(*message)};
      last_request_ = it->second.request_id;
      received_.erase(it);
      return found;
    }
    return std::nullopt;
  }

  void Send(control::PeerId peer, protocol::Body body, std::uint64_t request_id = 0) {
    protocol::Envelope envelope;
    envelope.sender_incarnation = incarnation;
    envelope.request_id = request_id;
    envelope.body = std::move(body);
    const auto bytes = encoder_.Encode(envelope);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const Status sent = socket_->Send(peer, *bytes);
    EXPECT_TRUE(sent.ok()) << sent;
  }
  /// To the message Expect returned last.
  void Answer(control::PeerId peer, protocol::Body body) {
    Send(peer, std::move(body), last_request_);
  }

  std::uint64_t last_request() const { return last_request_; }

  /// The agent or a worker registers and is told that it did.
  std::pair<control::PeerId, protocol::RegisterAgent> ExpectAgent() {
    auto message = Expect<protocol::RegisterAgent>();
    Answer(message.first, protocol::AgentRegistered{incarnation, 500});
    return message;
  }
  std::pair<control::PeerId, protocol::RegisterWorker> ExpectWorker() {
    auto message = Expect<protocol::RegisterWorker>();
    Answer(message.first, protocol::WorkerRegistered{incarnation, 10'000});
    return message;
  }

  bool RunUntil(const std::function<bool()>& done) { return loop_->RunUntil(done, kPatience); }

  control::EventLoop& loop() { return *loop_; }

  std::uint32_t incarnation = 1;

 private:
  void Open() {
    control::ServerSocket::Options options;
    options.address = address_;
    options.pair = server_;
    control::ServerSocket::Callbacks callbacks;
    callbacks.on_message = [this](const control::Peer& peer, std::span<const std::byte> bytes) {
      StatusOr<protocol::Envelope> envelope = decoder_.Decode(bytes);
      ASSERT_TRUE(envelope.ok()) << envelope.status();
      if (std::holds_alternative<protocol::Heartbeat>(envelope->body)) return;
      const auto key = std::make_pair(envelope->sender_incarnation, envelope->request_id);
      if (envelope->request_id != 0 && !requests_.insert(key).second) return;  // repeated
      if (std::holds_alternative<protocol::RenewLeases>(envelope->body)) {
        Send(peer.id, protocol::LeasesRenewed{}, envelope->request_id);
        return;
      }
      received_.emplace_back(peer.id, *std::move(envelope));
    };
    callbacks.on_gone = [](control::PeerId) {};
    auto bound = control::ServerSocket::Bind(*loop_, options, table_, std::move(callbacks));
    ASSERT_TRUE(bound.ok()) << bound.status();
    socket_ = *std::move(bound);
  }

  std::unique_ptr<control::EventLoop> loop_ = *control::EventLoop::Open();
  const control::KeyPair server_ = control::KeyPair::Generate();
  const control::KeyPair node_ = control::KeyPair::Generate();
  std::filesystem::path folder_;
  std::string address_;
  control::AuthorizedKeys table_;
  protocol::Encoder encoder_;
  protocol::Decoder decoder_;
  std::deque<std::pair<control::PeerId, protocol::Envelope>> received_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> requests_;  ///< (sender, request id) seen
  std::uint64_t last_request_ = 0;
  std::unique_ptr<control::ServerSocket> socket_;
};

}  // namespace patchbay::workers
