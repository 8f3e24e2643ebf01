// Ports on which programs of Patchbay listen on this machine.
#pragma once

#include <string>

namespace patchbay::cli {

/// The ports of this user's programs, those first that other machines may reach: "other machines
/// may reach 10.0.0.7:7678 (patchbay-schedu); only this one reaches 127.0.0.1:9178 (metrics)".
/// Pages say how they are guarded: "(metrics over TLS, by token)". `proc`: the folder /proc.
std::string ExposedPorts(const std::string& proc);

}  // namespace patchbay::cli
