#include "runtime/client/environment.h"

#include <string_view>

#include <pwd.h>
#include <unistd.h>

#include "runtime/core/strings.h"

namespace patchbay::client {
namespace {

/// The value of a variable, or "".
std::string Value(char** variables, std::string_view name) {
  for (char** entry = variables; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.size() > name.size() && text.substr(0, name.size()) == name &&
        text[name.size()] == '=') {
      return std::string(text.substr(name.size() + 1));
    }
  }
  return "";
}

std::string DefaultHome(char** variables) {
  std::string home = Value(variables, "HOME");
  if (home.empty()) {
    const passwd* user = getpwuid(getuid());
    home = user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/";
  }
  return home + "/.patchbay";
}

bool IsWritable(const std::string& folder) {
  return !folder.empty() && access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

Environment ReadEnvironment(char** variables, const plan::OpTable& ops) {
  Environment environment;
  environment.ops = &ops;
  environment.home = Value(variables, "PATCHBAY_HOME");
  if (environment.home.empty()) environment.home = DefaultHome(variables);
  environment.cluster_file = Value(variables, "PATCHBAY_CLUSTER");
  environment.site_file = Value(variables, "PATCHBAY_SITE");
  if (environment.site_file.empty() && access(kSiteFile, F_OK) == 0) {
    environment.site_file = kSiteFile;
  }
  environment.temporary = Value(variables, "XDG_RUNTIME_DIR");
  if (!IsWritable(environment.temporary)) environment.temporary = Value(variables, "TMPDIR");
  if (!IsWritable(environment.temporary)) environment.temporary = "/tmp";
  environment.python = Value(variables, "PATCHBAY_PYTHON");
  if (environment.python.empty()) environment.python = "python3";
  for (const char* name : {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}) {
    const std::string value = Value(variables, name);
    if (value.empty()) return environment.rendezvous.clear(), environment;
    environment.rendezvous += StrCat(value.size(), ":", value, ";");
  }
  return environment;
}

}  // namespace patchbay::client
