#include "runtime/format/json/json_stream.h"

#include <utility>

#include "runtime/core/outcome.h"
#include "runtime/core/strings.h"
#include "runtime/format/json/json_error.h"

namespace patchbay {
namespace {

/// Carries an error out of the parser.
struct Stopped {
  Status status;
};

}  // namespace

StatusOr<Json> ParseJsonTaking(std::string_view text, std::string_view what,
                               const TakeObject& take) {
  const auto see = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kMaxJsonDepth) {
      throw Stopped{ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                               StrCat("nested deeper than ", kMaxJsonDepth))};
    }
    if (event != Json::parse_event_t::object_end) return true;
    const StatusOr<bool> taken = take(value);
    if (!taken.ok()) throw Stopped{taken.status()};
    if (*taken) value = nullptr;
    return true;
  };
  try {
    return Json::parse(text, see);
  } catch (const Stopped& stopped) {
    return stopped.status;
  } catch (const Json::exception& error) {
    return ErrorAbout(absl::StatusCode::kInvalidArgument, "parse json", what,
                      JsonFaultOf(text, error));
  }
}

}  // namespace patchbay
