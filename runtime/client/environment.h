// Surroundings of a program that opens runs, read once by its main and passed on.
#pragma once

#include <string>

#include "runtime/core/status.h"
#include "runtime/model/ops/op_table.h"

namespace patchbay::client {

/// A file of the operator's, for all homes on this machine (site_file.h).
inline constexpr char kSiteFile[] = "/etc/patchbay/site.yaml";

struct Environment {
  std::string home;          ///< PATCHBAY_HOME, or ~/.patchbay
  std::string cluster_file;  ///< PATCHBAY_CLUSTER, or ""
  std::string temporary;     ///< XDG_RUNTIME_DIR where it is a folder of ours, else TMPDIR or /tmp
  std::string python;        ///< PATCHBAY_PYTHON, or "python3": of the user's own functions
  /// Values that the ranks of one launch have in common: TORCHELASTIC_RUN_ID, MASTER_ADDR and
  /// MASTER_PORT; "" unless all three are set.
  std::string rendezvous;
  const plan::OpTable* ops = nullptr;  ///< ops that run configs may name
  std::string site_file;  ///< PATCHBAY_SITE, else kSiteFile where there is one, else ""
};

/// From main's third argument, or `environ`.
Environment ReadEnvironment(char** variables, const plan::OpTable& ops);

}  // namespace patchbay::client
