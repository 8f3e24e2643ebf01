#include "runtime/wire/control/parent_pipe.h"

#include <algorithm>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/status.h"

namespace patchbay::control {

ParentPipe::ParentPipe(EventLoop& loop, int fd) : loop_(loop), fd_(fd) {
  if (fd_ < 0) return;
  fcntl(fd_, F_SETFD, FD_CLOEXEC);
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  // From inside the loop: a program that is still starting is not watched as one that runs.
  timer_ = loop_.After(0, [this] {
    Write("\n");
    timer_ = loop_.Every(kParentHeartbeatMs, [this] { Write("\n"); });
  });
}

ParentPipe::~ParentPipe() {
  if (fd_ < 0) return;
  loop_.Cancel(timer_);
  close(fd_);
}

void ParentPipe::ReportReady(std::string_view what) {
  if (fd_ >= 0) Write(what.empty() ? std::string("ready\n") : StrCat("ready ", what, "\n"));
}

void ParentPipe::ReportFailure(std::string_view why) {
  if (fd_ < 0) return;
  std::string line(why);
  std::replace(line.begin(), line.end(), '\n', ' ');
  Write(StrCat("failed ", line, "\n"));
}

void ParentPipe::Write(std::string_view text) const {
  // A parent that is gone takes its children along.
  [[maybe_unused]] const auto written = write(fd_, text.data(), text.size());
}

}  // namespace patchbay::control
