// UCX installs crash handlers and prints to stdout as soon as it is loaded.
#pragma once

namespace patchbay::data {

/// Gives crash signals back to the program and sends UCX's words to our log. Idempotent; call
/// before the data path is used.
void KeepUcxQuiet();

}  // namespace patchbay::data
