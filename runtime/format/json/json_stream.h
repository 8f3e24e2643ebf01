// JSON texts too large to be held as one value: objects are handed over while the text is read, or
// the text is cut into those of its parts.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/format/json/json.h"

namespace patchbay {

/// Sees every object of the text, inner ones first, as soon as its last brace is read. True: it has
/// served, and nothing of it is kept (null stands in its place in the object around it). An error
/// ends the reading.
using TakeObject = std::function<StatusOr<bool>(Json& object)>;

/// Reads the whole text and returns the part that was not taken. InvalidArgument as from ParseJson,
/// with the same limit of depth; never throws.
StatusOr<Json> ParseJsonTaking(std::string_view text, std::string_view what,
                               const TakeObject& take);

/// The texts of an object's members, by key.
using JsonMembers = std::map<std::string, std::string_view, std::less<>>;

/// The members of the object that `text` is, which they point into. All of it is checked, and
/// refused as by ParseJson, but no value is built: ParseJson makes one of a member's text.
StatusOr<JsonMembers> MembersOfJson(std::string_view text, std::string_view what);
/// The same for the elements of an array.
StatusOr<std::vector<std::string_view>> ElementsOfJson(std::string_view text,
                                                       std::string_view what);
/// The object with these members: that of DumpJson if their texts are.
std::string JoinMembers(const std::map<std::string, std::string>& members);

}  // namespace patchbay
