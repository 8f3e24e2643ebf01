// The files of the dashboard's page.
#pragma once

#include <string_view>

namespace patchbay::scheduler {

extern const std::string_view kPageHtml, kPageCss, kPageScript;

}  // namespace patchbay::scheduler
