// A declaration that Clang needs before Cap'n Proto's headers: they leave text == StringPtr to
// C++20's reversed operators, which Clang, as the standard now has it, does not try where the class
// has an own !=.
#pragma once

#include <kj/string.h>

namespace kj {
inline bool operator==(const char* a, const StringPtr& b) { return b == StringPtr(a); }
}  // namespace kj
