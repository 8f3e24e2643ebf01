// The program that loads and calls the user's own functions, function_host.py, as text.
#pragma once

#include <string_view>

namespace patchbay::workers {

extern const std::string_view kFunctionHost;

}  // namespace patchbay::workers
