// patchbay top: the cluster on one screen, as long as it is watched.
#include <cstdio>
#include <ctime>
#include <optional>

#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/cli/cluster/node_view.h"
#include "runtime/cli/cluster/top_view.h"
#include "runtime/cli/cluster_access.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/core/clock.h"
#include "runtime/core/printable.h"
#include "runtime/core/strings.h"

namespace patchbay::cli {
namespace {

constexpr std::int64_t kAskEveryNs = 1'000'000'000;
constexpr long kTerminalLookMs = 100;  ///< at the size of the terminal
constexpr std::size_t kOnceColumns = 1'000;

/// The size of the terminal of stdout; 80 by 24 if it does not say.
ScreenSize SizeOfScreen() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {80, 24};
  }
  return {size.ws_col, size.ws_row};
}

/// The other screen of the terminal, without a cursor. A frame is one write over the one before, so
/// that nothing flickers.
class Screen {
 public:
  Screen() { Write("\x1b[?1049h\x1b[?25l"); }
  ~Screen() { Write("\x1b[?25h\x1b[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  static void Draw(const std::vector<std::string>& lines) {
    std::string frame = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      frame += StrCat(i == 0 ? "" : "\r\n", lines[i], "\x1b[K");
    }
    Write(frame + "\x1b[J");
  }

 private:
  static void Write(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
};

class TopCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"--once", "", "print it once, as wide as it is, and end", &once_}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(client::Cluster cluster, OpenCluster(session, nullptr));
    PB_ASSIGN_OR_RETURN(protocol::ClusterDescribed state, cluster.client().DescribeCluster());
    if (once_ || session.terminal.json() || isatty(STDOUT_FILENO) == 0) {
      const ScreenSize whole{kOnceColumns, 0};
      for (const std::string& line : TopLines(state, whole, std::time(nullptr))) {
        session.terminal.Say(line);
      }
      session.terminal.Result(ClusterToJson(state));
      return ExitCode::kDone;
    }
    Watch(cluster.client(), std::move(state));
    return ExitCode::kDone;
  }

 private:
  /// Until Ctrl-C. A scheduler that is away is said in place of the last line, and asked again.
  static void Watch(client::Client& client, protocol::ClusterDescribed state) {
    const Screen screen;
    std::string trouble;
    ScreenSize shown{0, 0};
    for (std::int64_t asked_ns = SteadyNowNs(); !Interrupted(); PauseMs(kTerminalLookMs)) {
      const ScreenSize size = SizeOfScreen();
      const bool due = SteadyNowNs() - asked_ns >= kAskEveryNs;
      if (!due && size.columns == shown.columns && size.rows == shown.rows) continue;
      if (due) {
        auto next = client.DescribeCluster();
        trouble = next.ok() ? "" : Printable(MessageOf(next.status()));
        if (next.ok()) state = *std::move(next);
        asked_ns = SteadyNowNs();
      }
      std::vector<std::string> lines = TopLines(state, size, std::time(nullptr));
      if (!trouble.empty()) {
        lines.resize(size.rows);
        lines.back() = FirstColumns(trouble, size.columns);
      }
      Screen::Draw(lines);
      shown = size;
    }
  }

  bool once_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeTop() { return std::make_unique<TopCommand>(); }

}  // namespace patchbay::cli
