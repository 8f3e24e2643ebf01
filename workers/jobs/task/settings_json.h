// Settings of a job, read from its payload: what is not there keeps its default.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::workers {

/// InvalidArgument unless `payload` is an object whose keys are all `known`.
Status CheckSettingKeys(const Json& payload, std::span<const char* const> known,
                        std::string_view what);

/// Sets `value` where the payload has `key`; InvalidArgument for another type.
Status ReadSetting(const Json& payload, const char* key, std::string_view what, bool& value);
Status ReadSetting(const Json& payload, const char* key, std::string_view what,
                   std::int64_t& value);
Status ReadSetting(const Json& payload, const char* key, std::string_view what, std::string& value);
/// null leaves it unset.
Status ReadSetting(const Json& payload, const char* key, std::string_view what,
                   std::optional<double>& value);

}  // namespace patchbay::workers
