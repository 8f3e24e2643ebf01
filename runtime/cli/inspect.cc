// patchbay inspect STORE|SLIDE: what it holds.
#include "runtime/base/strings.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/interrupt.h"
#include "runtime/cli/paths.h"
#include "runtime/cli/worker_run.h"
#include "runtime/zarr/verify.h"

namespace patchbay::cli {
namespace {

std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "unknown" : DumpJson(value);
}

/// A member of an object, or null.
Json Member(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() ? *it : Json();
}

void SayImage(Terminal& terminal, const Json& image) {
  const Json source = Member(image, "source");
  terminal.Say(StrCat("kind          ", TextOf(Member(source, "kind"))));
  terminal.Say(StrCat("source bytes  ", TextOf(Member(source, "bytes"))));
  terminal.Say(StrCat("stored bytes  ", TextOf(Member(image, "stored_bytes"))));
  terminal.Say(StrCat("um per pixel  ", TextOf(Member(image, "mpp"))));
  terminal.Say(StrCat("digest        ", TextOf(Member(image, "digest"))));
  terminal.Say(StrCat("pixel digest  ", TextOf(Member(image, "pixel_digest"))));
  std::vector<std::vector<std::string>> rows = {{"level", "shape", "chunk", "downsample"}};
  const Json levels = Member(image, "levels");
  for (std::size_t i = 0; levels.is_array() && i < levels.size(); ++i) {
    rows.push_back({StrCat(i), TextOf(Member(levels[i], "shape")),
                    TextOf(Member(levels[i], "chunk")), TextOf(Member(levels[i], "downsample"))});
  }
  for (const std::string& line : FormatTable(rows)) terminal.Say(line);
}

class InspectCommand final : public Command {
 public:
  std::vector<Argument> Arguments() override {
    return {{"STORE|SLIDE", "", "a store's folder or a slide's file", &path_, true}};
  }

  StatusOr<ExitCode> Run(Session& session) override {
    const InterruptScope interrupts;
    PB_ASSIGN_OR_RETURN(const std::string path, AbsolutePath(path_));
    PB_ASSIGN_OR_RETURN(const Json image, Inspect(path));
    SayImage(session.terminal, image);
    session.terminal.Result(image);
    return ExitCode::kDone;
  }

 private:
  StatusOr<Json> Inspect(const std::string& path) const {
    if (IsStore(path)) return zarr::InspectStore(path);
    return RunWorkerOp("inspect", Json::object(), {{"images", {path}}});
  }

  std::string path_;
};

}  // namespace

std::unique_ptr<Command> MakeInspect() { return std::make_unique<InspectCommand>(); }

}  // namespace patchbay::cli
