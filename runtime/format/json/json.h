// The only file that includes nlohmann-json: metadata, plans, task payloads and `--json` output.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/core/status.h"

namespace patchbay {

/// Object keys are kept sorted, so Dump is canonical: equal values give equal bytes.
using Json = nlohmann::json;

inline constexpr std::size_t kMaxJsonBytes = 32u << 20;
inline constexpr int kMaxJsonDepth = 64;

// Text in a Json value may hold any bytes, as paths do; JSON is UTF-8. DumpJson writes a byte that
// is not part of UTF-8 as \u0000 and its two hex digits, and a zero byte as \u000000; ParseJson
// makes bytes of them again. So a value comes back as it was, and text without such bytes is plain
// JSON.

/// InvalidArgument with `what` and the byte offset for malformed, too deep or too long text; never
/// throws.
StatusOr<Json> ParseJson(std::string_view text, std::string_view what,
                         std::size_t max_bytes = kMaxJsonBytes);

/// Compact, keys sorted. Deterministic; never throws.
std::string DumpJson(const Json& value);

/// Typed member access; InvalidArgument naming `what` and the key when it is missing or of another
/// type.
StatusOr<std::int64_t> JsonInt(const Json& object, const char* key, std::string_view what);
/// An integer that counts something: 0 or above.
StatusOr<std::uint64_t> JsonCount(const Json& object, const char* key, std::string_view what);
StatusOr<double> JsonDouble(const Json& object, const char* key, std::string_view what);
StatusOr<bool> JsonBool(const Json& object, const char* key, std::string_view what);
StatusOr<std::string> JsonString(const Json& object, const char* key, std::string_view what);
/// Pointer into `object`, valid as long as it is.
StatusOr<const Json*> JsonMember(const Json& object, const char* key, std::string_view what);

}  // namespace patchbay
