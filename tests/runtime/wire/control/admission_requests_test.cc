// Answers of the thread that admits peers, asked as ZeroMQ asks it (RFC 27), frame by frame.
#include <array>

#include <gtest/gtest.h>
#include <zmq.hpp>

#include "runtime/wire/control/admission.h"
#include "runtime/wire/control/server_socket.h"

namespace patchbay::control {
namespace {

class AdmissionRequests : public testing::Test {
 protected:
  void SetUp() override {
    const KeyPair pair = KeyPair::Generate();
    KnownKey ann{.name = "ann", .role = Role::kTrainer, .public_key = pair.public_key};
    KnownKey eve{
        .name = "eve", .role = Role::kTrainer, .public_key = KeyPair::Generate().public_key};
    eve.revoked = true;
    key_ = Decoded(ann.public_key);
    revoked_ = Decoded(eve.public_key);
    auto admission = Admission::Start(context_, *AuthorizedKeys::Of({ann, eve}), dropped_);
    ASSERT_TRUE(admission.ok()) << admission.status();
    admission_ = *std::move(admission);
    asking_.set(zmq::sockopt::rcvtimeo, 20'000);
    asking_.connect("inproc://zeromq.zap.01");
  }

  static std::string Decoded(const std::string& text) {
    std::array<std::uint8_t, 32> bytes;
    EXPECT_NE(zmq_z85_decode(bytes.data(), text.c_str()), nullptr);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  /// A request as ZeroMQ makes it.
  std::vector<std::string> Request() const {
    return {"1.0", "id", kZapDomain, "10.0.0.9", "", "CURVE", key_};
  }
  /// "200 ann", "400 ".
  std::string Answer(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      asking_.send(zmq::message_t(frames[i].data(), frames[i].size()),
                   i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
    std::vector<std::string> answer;
    zmq::message_t frame;
    do {
      if (!asking_.recv(frame)) return "no answer";
      answer.push_back(frame.to_string());
    } while (frame.more());
    EXPECT_EQ(answer.size(), 6u);
    if (answer.size() != 6) return "malformed";
    EXPECT_EQ(answer[0], "1.0");
    EXPECT_EQ(answer[1], "id");
    return answer[2] + " " + answer[4];
  }

  DroppedPeers dropped_;
  zmq::context_t context_{1};
  std::unique_ptr<Admission> admission_;
  zmq::socket_t asking_{context_, zmq::socket_type::req};
  std::string key_, revoked_;
};

TEST_F(AdmissionRequests, OnlyAWholeRequestOfAKnownKeyGetsIn) {
  EXPECT_EQ(Answer(Request()), "200 ann");
  struct Wrong {
    std::size_t frame;
    std::string text;
  };
  for (const Wrong& wrong :
       {Wrong{0, "2.0"}, Wrong{0, ""}, Wrong{2, "another"}, Wrong{2, ""}, Wrong{5, "NULL"},
        Wrong{5, "PLAIN"}, Wrong{6, revoked_}, Wrong{6, key_.substr(0, 31)}, Wrong{6, key_ + "x"},
        Wrong{6, ""}, Wrong{6, std::string(32, 'x')}}) {
    auto request = Request();
    request[wrong.frame] = wrong.text;
    EXPECT_EQ(Answer(request), "400 ") << "frame " << wrong.frame << ": " << wrong.text;
  }
  for (const std::size_t frames : {2u, 6u, 8u, 9u, 40u}) {
    auto request = Request();
    request.resize(frames, "more");
    EXPECT_EQ(Answer(request), "400 ") << frames << " frames";
  }
  EXPECT_EQ(Answer(Request()), "200 ann");
}

}  // namespace
}  // namespace patchbay::control
