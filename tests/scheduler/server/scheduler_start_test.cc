// How the scheduler process starts, refuses to start, and ends.
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runtime/wire/control/session.h"
#include "tests/scheduler/server/scheduler_process.h"

namespace patchbay::scheduler {
namespace {

constexpr int kDone = 0, kCannotStart = 2;

TEST(SchedulerStart, SaysWhereItListensAndEndsOnSigterm) {
  SchedulerProcess process;
  process.set_address("tcp://127.0.0.1:*");
  ASSERT_EQ(process.Start(), 0) << process.errors();
  EXPECT_EQ(process.address().rfind("tcp://127.0.0.1:", 0), 0u);
  EXPECT_EQ(process.Stop(), kDone) << process.errors();
}

TEST(SchedulerStart, UnknownAndMissingFlagsAreSaid) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--nonsense", "1"},
                                               {"--listen"},
                                               {"--ready-fd", "x"},
                                               {"--state", ""},
                                               {"--listen", "http://x"},
                                               {"--metrics", "10.0.0.7:9178"},
                                               {"--dashboard", "9179", "--tls", "/dev/null"},
                                               {"--listen", "tcp://localhost:1"}}) {
    SchedulerProcess process;
    EXPECT_EQ(process.Start(more), kCannotStart) << more[0];
    EXPECT_FALSE(process.errors().empty());
  }
}

TEST(SchedulerStart, AddressInUseIsSaid) {
  SchedulerProcess first, second;
  first.set_address("tcp://127.0.0.1:*");
  ASSERT_EQ(first.Start(), 0);
  second.set_address(first.address());
  EXPECT_EQ(second.Start(), kCannotStart);
  EXPECT_NE(second.errors().find("another process is listening there: give another --listen, or "
                                 "`patchbay down`"),
            std::string::npos)
      << second.errors();
}

TEST(SchedulerStart, StateFolderIsForOneSchedulerAtATime) {
  SchedulerProcess first, second;
  ASSERT_EQ(first.Start(), 0);
  EXPECT_EQ(second.Start({"--state", first.state_folder()}), kCannotStart);
  EXPECT_NE(second.errors().find("another scheduler uses it"), std::string::npos)
      << second.errors();
  first.Kill();
  EXPECT_EQ(second.Start({"--state", first.state_folder()}), kCannotStart);
  EXPECT_NE(second.errors().find("sealed with another server key"), std::string::npos)
      << second.errors();
  EXPECT_EQ(second.Start({"--state", first.state_folder(), "--home", first.home_folder()}), 0)
      << second.errors();
}

TEST(SchedulerStart, StateFolderOfOthersAndNoFolderAtAllAreRefused) {
  SchedulerProcess process;
  ASSERT_TRUE(MakeDirectories(Folders::OfThisUser(), process.state_folder(), 0755).ok());
  ASSERT_EQ(chmod(process.state_folder().c_str(), 0755), 0);
  EXPECT_EQ(process.Start(), kCannotStart);
  EXPECT_NE(process.errors().find("chmod 700"), std::string::npos) << process.errors();
  EXPECT_EQ(process.Start({"--state", "/proc/nowhere/state"}), kCannotStart);
}

TEST(SchedulerStart, BadServerKeyIsSaid) {
  SchedulerProcess process;
  ASSERT_TRUE(process.Home().ServerKey().ok());
  const std::string path = process.Home().ServerKeyPath();
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(process.Start({"--server-key", path}), kCannotStart);
  EXPECT_EQ(process.Start({"--server-key", "/nowhere/server.key"}), kCannotStart);
  EXPECT_NE(process.errors().find("chmod 600"), std::string::npos);
  EXPECT_NE(process.errors().find("/nowhere/server.key"), std::string::npos);
}

TEST(SchedulerStart, BadKeyTableIsSaid) {
  SchedulerProcess process;
  process.NewKey("ann", control::Role::kOperator);
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(),
                               StrCat(process.Home().KeysFolder(), "/bob.yaml"),
                               AsBytes("role: king\n"), 0600)
                  .ok());
  EXPECT_EQ(process.Start(), kCannotStart);
  EXPECT_NE(process.errors().find("bob.yaml"), std::string::npos) << process.errors();
}

TEST(SchedulerStart, PublicAddressMustBeAllowed) {
  SchedulerProcess process;
  process.set_address("tcp://0.0.0.0:*");
  EXPECT_EQ(process.Start(), kCannotStart);
  EXPECT_NE(process.errors().find("public or wildcard"), std::string::npos) << process.errors();
  EXPECT_EQ(process.Start({"--allow-public"}), 0) << process.errors();
}

TEST(SchedulerStart, DamagedJournalIsNotOverwritten) {
  SchedulerProcess process;
  ASSERT_TRUE(MakeDirectories(Folders::OfThisUser(), process.state_folder(), 0700).ok());
  const std::string path = StrCat(process.state_folder(), "/journal.db");
  const std::string garbage(8192, 'g');
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(garbage), 0600).ok());
  EXPECT_EQ(process.Start(), kCannotStart);
  EXPECT_EQ(*ReadFile(Folders::OfThisUser(), path, 1 << 20), garbage);
}

TEST(SchedulerStart, ShutdownDrainsTheAgentsFirst) {
  SchedulerProcess process;
  const auto op = process.NewKey("op", control::Role::kOperator);
  const auto node = process.NewKey("node", control::Role::kWorker);
  ASSERT_EQ(process.Start(), 0);
  const auto loop = *control::EventLoop::Open();
  bool registered = false, told = false;
  std::unique_ptr<control::Session> agent;
  agent =
      *control::Session::Open(*loop, node,
                              {.on_connected =
                                   [&] {
                                     protocol::RegisterAgent offer;
                                     offer.node = "node";
                                     offer.agent_incarnation = 1;
                                     agent->Request(offer, kProcessPatienceMs,
                                                    [&](auto answer) { registered = answer.ok(); });
                                   },
                               .on_lost = {},
                               .on_fact =
                                   [&](protocol::Body body) {
                                     if (std::holds_alternative<protocol::Drain>(body)) told = true;
                                   }});
  ASSERT_TRUE(loop->RunUntil([&] { return registered; }, kProcessPatienceMs));
  const auto client = control::RequestClient::Open(op, kProcessPatienceMs);
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE((*client)->Call(protocol::ShutDown{}, kProcessPatienceMs).ok());
  ASSERT_TRUE(loop->RunUntil([&] { return told; }, kProcessPatienceMs));
  EXPECT_TRUE(
      (*client)->Call(protocol::DescribeJobs{}, kProcessPatienceMs).ok());  // it still serves
  agent.reset();
  EXPECT_EQ(process.Wait(), kDone);
}

TEST(SchedulerStart, ASignalTellsTheTrainersTheDeadlineAndListensUntilTheyLeft) {
  SchedulerProcess process;
  const auto ann = process.NewKey("ann", control::Role::kTrainer);
  ASSERT_EQ(process.Start({"--grace-ms", "7000"}), 0);
  const auto loop = *control::EventLoop::Open();
  bool asked = false, told = false, answered = false;
  std::unique_ptr<control::Session> trainer;
  trainer = *control::Session::Open(
      *loop, ann,
      {.on_connected =
           [&] {  // refused, for there is no such stream: a peer that tried is told, too
             trainer->Request(protocol::AttachTrainer{}, kProcessPatienceMs,
                              [&](auto) { asked = true; });
           },
       .on_lost = {},
       .on_fact =
           [&](protocol::Body body) {
             const auto* stopping = std::get_if<protocol::ShuttingDown>(&body);
             told = stopping != nullptr && stopping->deadline_ms == 7'000;
           }});
  ASSERT_TRUE(loop->RunUntil([&] { return asked; }, kProcessPatienceMs));
  kill(process.pid(), SIGUSR1);  // from the supervisor: the stop itself comes later
  ASSERT_TRUE(loop->RunUntil([&] { return told; }, kProcessPatienceMs));
  told = asked = false;
  trainer->Request(protocol::AttachTrainer{}, kProcessPatienceMs, [&](auto) { asked = true; });
  ASSERT_TRUE(loop->RunUntil([&] { return asked; }, kProcessPatienceMs));
  kill(process.pid(), SIGTERM);
  ASSERT_TRUE(loop->RunUntil([&] { return told; }, kProcessPatienceMs))
      << "it came after the notice";
  trainer->Request(protocol::DetachTrainer{1, 0}, kProcessPatienceMs,
                   [&](const auto& answer) { answered = answer.ok(); });
  EXPECT_TRUE(loop->RunUntil([&] { return answered; }, kProcessPatienceMs)) << "it still serves";
  trainer.reset();
  EXPECT_EQ(process.Wait(), kDone);
}

TEST(SchedulerStart, OperatorMayShutItDown) {
  SchedulerProcess process;
  const auto key = process.NewKey("op", control::Role::kOperator);
  ASSERT_EQ(process.Start(), 0);
  const auto client = control::RequestClient::Open(key, kProcessPatienceMs);
  ASSERT_TRUE(client.ok()) << Describe(client.status());
  const auto answer =
      (*client)->CallFor<protocol::ShuttingDown>(protocol::ShutDown{}, kProcessPatienceMs);
  ASSERT_TRUE(answer.ok()) << Describe(answer.status());
  EXPECT_EQ(answer->deadline_ms, 20'000u);
  EXPECT_EQ(process.Wait(), kDone);
}

}  // namespace
}  // namespace patchbay::scheduler
