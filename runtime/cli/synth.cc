// patchbay synth slide OUT.svs: a realistic slide made from nothing.
#include <charconv>
#include <filesystem>

#include "runtime/base/strings.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/machine_checks.h"
#include "runtime/cli/paths.h"
#include "runtime/cli/worker_run.h"

namespace patchbay::cli {
namespace {

/// "6000x4500".
StatusOr<std::pair<std::int64_t, std::int64_t>> ParseSize(const std::string& text) {
  std::int64_t width = 0, height = 0;
  const char* end = text.data() + text.size();
  const auto [middle, first] = std::from_chars(text.data(), end, width);
  if (first == std::errc() && middle != end && *middle == 'x') {
    const auto [last, second] = std::from_chars(middle + 1, end, height);
    if (second == std::errc() && last == end && width > 0 && height > 0) {
      return std::make_pair(width, height);
    }
  }
  return UsageError(StrCat("--size: expected WxH in pixels, such as 6000x4500, not '", text, "'"));
}

class SynthSlideCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    Argument seed{"--seed", "S", "another seed, another slide", &seed_};
    seed.min = 0;
    return {{"OUT.svs", "", "the file to write", &path_, true},
            {"--size", "WxH", "pixels of level 0 (default 8192x8192)", &size_},
            seed};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const auto size, ParseSize(size_));
    PB_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(path_));
    const Json payload = {{"width", size.first},
                          {"height", size.second},
                          {"seed", seed_},
                          {"threads", UsableCores()}};
    PB_RETURN_IF_ERROR(RunWorkerOp("synth.slide", payload, {{"out", path}}).status());
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(path, error);
    session.terminal.Say(StrCat(path_, ": ", size.first, " x ", size.second, " pixels, ",
                                HumanBytes(error ? 0 : bytes)));
    session.terminal.Result({{"path", path},
                             {"width", size.first},
                             {"height", size.second},
                             {"seed", seed_},
                             {"bytes", error ? 0 : bytes}});
    return ExitCode::kDone;
  }

 private:
  std::string path_;
  std::string size_ = "8192x8192";
  std::int64_t seed_ = 1;
};

}  // namespace

std::unique_ptr<Command> MakeSynthSlide() { return std::make_unique<SynthSlideCommand>(); }

}  // namespace patchbay::cli
