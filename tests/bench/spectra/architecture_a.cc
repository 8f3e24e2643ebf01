// Architecture A: pairs of a producer process and a consumer, with messages between them.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/core/strings.h"
#include "runtime/os/file.h"
#include "tests/bench/spectra/frame_passes.h"
#include "tests/bench/spectra/rivals.h"
#include "tests/bench/spectra/slide_rows.h"

namespace patchbay::bench {
namespace {

constexpr std::int64_t kFrameBytes = std::int64_t{kFrame} * kFrame;
constexpr std::uint32_t kFramesInMessage = 16;
constexpr int kPipeBytes = 1 << 20;

/// Before the pixels of its frames.
struct MessageHead {
  std::uint32_t frames = 0;
  std::uint32_t failed = 0;
};

bool WriteAll(int fd, const void* from, std::size_t bytes) {
  for (auto at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t done = write(fd, at, bytes);
    if (done <= 0) return false;
    at += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

bool ReadAll(int fd, void* into, std::size_t bytes) {
  for (auto at = static_cast<char*>(into); bytes > 0;) {
    const ssize_t done = read(fd, at, bytes);
    if (done <= 0) return false;
    at += done;
    bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

/// Frames of one strip, cut and put behind one another.
class MessageWriter {
 public:
  explicit MessageWriter(int fd)
      : fd_(fd), bytes_(sizeof(MessageHead) + kFramesInMessage * kFrameBytes) {}

  bool Add(const std::uint8_t* pixels, std::int64_t row_bytes) {
    std::uint8_t* to = bytes_.data() + sizeof(MessageHead) + head_.frames * kFrameBytes;
    for (int y = 0; y < kFrame; ++y) std::memcpy(to + y * kFrame, pixels + y * row_bytes, kFrame);
    return ++head_.frames < kFramesInMessage || Flush();
  }
  bool Flush() {
    std::memcpy(bytes_.data(), &head_, sizeof(head_));
    const bool sent = WriteAll(fd_, bytes_.data(), sizeof(head_) + head_.frames * kFrameBytes);
    head_.frames = 0;
    return sent;
  }
  void Fail() {
    head_ = {0, 1};
    (void)Flush();
  }

 private:
  int fd_;
  MessageHead head_;
  std::vector<std::uint8_t> bytes_;
};

Status SendFrames(const RivalOptions& options, std::int64_t begin, std::int64_t end,
                  MessageWriter& messages) {
  PB_ASSIGN_OR_RETURN(const auto rows, SlideRows::Open(options.slide, options.own_reader));
  const std::int64_t width = rows->width(), strip = options.strip_rows;
  std::vector<std::uint8_t> grey(static_cast<std::size_t>((kKept + strip) * width));
  const auto read = [&](std::int64_t top, std::int64_t count, std::uint8_t* out) -> Status {
    const std::int64_t block = BlockColumns(count);
    for (std::int64_t x = 0; x < width; x += block) {
      PB_RETURN_IF_ERROR(rows->Read(top, x, count, std::min(block, width - x), out + x, width));
    }
    return absl::OkStatus();
  };
  PB_RETURN_IF_ERROR(read(begin * kHop, kKept, grey.data()));
  for (std::int64_t row = begin; row < end; row += strip / kHop) {
    const std::int64_t count = std::min(strip / kHop, end - row);
    PB_RETURN_IF_ERROR(read(row * kHop + kKept, count * kHop, grey.data() + kKept * width));
    for (std::int64_t y = 0; y < count * kHop; y += kHop) {
      for (std::int64_t x = 0; x + kFrame <= width; x += kHop) {
        if (!messages.Add(grey.data() + y * width + x, width)) {
          return absl::UnavailableError("send frames: the consumer is gone");
        }
      }
    }
    std::memmove(grey.data(), grey.data() + count * kHop * width,
                 static_cast<std::size_t>(kKept * width));
  }
  return messages.Flush() ? absl::OkStatus() : absl::UnavailableError("send frames: pipe");
}

[[noreturn]] void RunProducer(const RivalOptions& options, std::int64_t begin, std::int64_t end,
                              int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  MessageWriter messages(fd);
  if (!SendFrames(options, begin, end, messages).ok()) messages.Fail();
  _exit(0);
}

/// Takes messages until the pipe ends.
Status Consume(int fd, Outcome& outcome) {
  FramePasses passes;
  std::vector<std::uint8_t> pixels(kFramesInMessage * kFrameBytes);
  std::int64_t cut = 0;
  for (MessageHead head; ReadAll(fd, &head, sizeof(head));) {
    if (head.failed != 0 || head.frames > kFramesInMessage ||
        !ReadAll(fd, pixels.data(), head.frames * kFrameBytes)) {
      return absl::DataLossError("consume: the producer failed");
    }
    for (std::uint32_t i = 0; i < head.frames; ++i) {
      passes.Add(pixels.data() + i * kFrameBytes, kFrame);
    }
    cut += head.frames;
  }
  passes.Finish();
  outcome = passes.outcome();
  outcome.copied_bytes = 3 * cut * kFrameBytes;  // cut, into the pipe, out of it
  return absl::OkStatus();
}

}  // namespace

StatusOr<Outcome> RunArchitectureA(const RivalOptions& options) {
  PB_ASSIGN_OR_RETURN(const auto shape, SlideRows::Open(options.slide, options.own_reader));
  const std::int64_t frame_rows = (shape->height() - kFrame) / kHop + 1;
  const auto pairs = static_cast<std::size_t>(options.cores);
  std::vector<UniqueFd> pipes;
  for (std::size_t i = 0; i < pairs; ++i) {
    int ends[2];
    if (pipe(ends) != 0) return FromErrno("pipe", "architecture A", errno);
    (void)fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);
    const auto first = static_cast<std::int64_t>(i), of = static_cast<std::int64_t>(pairs);
    if (fork() == 0) {
      RunProducer(options, frame_rows * first / of, frame_rows * (first + 1) / of, ends[1]);
    }
    close(ends[1]);
    pipes.emplace_back(ends[0]);
  }
  std::vector<Outcome> outcomes(pairs);
  std::vector<Status> ends(pairs);
  std::vector<std::thread> consumers;
  for (std::size_t i = 0; i < pairs; ++i) {
    consumers.emplace_back([&, i] { ends[i] = Consume(pipes[i].get(), outcomes[i]); });
  }
  for (std::thread& consumer : consumers) consumer.join();
  while (wait(nullptr) > 0) {
  }
  Outcome all;
  for (std::size_t i = 0; i < pairs; ++i) {
    PB_RETURN_IF_ERROR(ends[i]);
    all.Add(outcomes[i]);
  }
  return all;
}

}  // namespace patchbay::bench
