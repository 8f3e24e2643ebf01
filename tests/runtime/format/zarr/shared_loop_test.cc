// A list of items is done once by one thread or two, and ends with its first
// error.
#include "runtime/format/zarr/shared_loop.h"

#include <array>
#include <atomic>
#include <future>
#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace patchbay::zarr {
namespace {

TEST(SharedLoop, OneThreadDoesAllInOrder) {
  SharedLoop loop;
  std::vector<std::size_t> done;
  const auto item = [&](std::size_t i, SharedLoop::Lane lane) {
    EXPECT_EQ(lane, SharedLoop::kOwner);
    done.push_back(i);
    return absl::OkStatus();
  };
  ASSERT_TRUE(loop.Run(3, item).ok());
  ASSERT_TRUE(loop.Run(0, item).ok());
  ASSERT_TRUE(loop.Run(1, item).ok());
  EXPECT_EQ(done, (std::vector<std::size_t>{0, 1, 2, 0}));
}

TEST(SharedLoop, TheHelperTakesItemsOfOneRunAfterAnotherUntilTheEnd) {
  SharedLoop loop;
  auto helping = std::async(std::launch::async, [&] { loop.Help(); });
  for (int run = 0; run < 20; ++run) {
    std::array<std::atomic<int>, 2> begun{};
    std::array<std::atomic<int>, 9> done{};
    ASSERT_TRUE(loop.Run(done.size(),
                         [&](std::size_t i, SharedLoop::Lane lane) {
                           ++done[i];
                           ++begun[lane];
                           // Neither thread goes on alone.
                           while (begun[0] == 0 || begun[1] == 0) std::this_thread::yield();
                           return absl::OkStatus();
                         })
                    .ok());
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
  loop.End();
  helping.get();
}

TEST(SharedLoop, ItemsThatAreNotMadeYetAreNotBegun) {
  SharedLoop loop;
  loop.Allow(0);
  std::atomic<std::size_t> made = 0;
  auto running = std::async(std::launch::async, [&] {
    return loop.Run(5, [&](std::size_t i, SharedLoop::Lane) {
      EXPECT_LT(i, made);
      return absl::OkStatus();
    });
  });
  for (std::size_t i = 1; i <= 5; ++i) {
    made = i;
    loop.Allow(i);
    loop.HelpOnce();
  }
  EXPECT_TRUE(running.get().ok());
  EXPECT_EQ(loop.Waiting(), 0u);
  std::size_t done = 0;
  EXPECT_TRUE(loop.Run(9,
                       [&](auto, auto) {
                         ++done;
                         return absl::OkStatus();
                       })
                  .ok());
  EXPECT_EQ(done, 9u) << "the runs after it are not held";
}

TEST(SharedLoop, ACancelledRunEndsWithoutTheItemsThatWereNeverMade) {
  SharedLoop loop;
  loop.Allow(0);
  auto running = std::async(
      std::launch::async, [&] { return loop.Run(5, [](auto, auto) { return absl::OkStatus(); }); });
  loop.Cancel();
  EXPECT_TRUE(absl::IsCancelled(running.get()));
  EXPECT_TRUE(absl::IsCancelled(loop.Run(1, [](auto, auto) { return absl::OkStatus(); })));
}

TEST(SharedLoop, AnErrorOfTheHelperEndsTheRunAndTheNextOneIsWhole) {
  SharedLoop loop;
  auto helping = std::async(std::launch::async, [&] { loop.Help(); });
  std::atomic<bool> has_failed = false;
  const Status failed = loop.Run(1000, [&](std::size_t, SharedLoop::Lane lane) -> Status {
    if (lane == SharedLoop::kHelper) {
      has_failed = true;
      return absl::DataLossError("damaged");
    }
    while (!has_failed) std::this_thread::yield();
    return absl::OkStatus();
  });
  EXPECT_EQ(failed, absl::DataLossError("damaged"));
  std::atomic<int> done = 0;
  EXPECT_TRUE(loop.Run(5,
                       [&](auto, auto) {
                         ++done;
                         return absl::OkStatus();
                       })
                  .ok());
  EXPECT_EQ(done, 5);
  loop.End();
  helping.get();
}

TEST(SharedLoop, AnExceptionOfTheHelperIsThrownToTheOwner) {
  SharedLoop loop;
  auto helping = std::async(std::launch::async, [&] { loop.Help(); });
  std::atomic<bool> has_thrown = false;
  const auto body = [&](std::size_t, SharedLoop::Lane lane) -> Status {
    if (lane == SharedLoop::kHelper) {
      has_thrown = true;
      throw std::bad_alloc();
    }
    while (!has_thrown) std::this_thread::yield();
    return absl::OkStatus();
  };
  EXPECT_THROW((void)loop.Run(1000, body), std::bad_alloc);
  { const SharedLoop::AtExit end{loop}; }
  helping.get();
}

}  // namespace
}  // namespace patchbay::zarr
