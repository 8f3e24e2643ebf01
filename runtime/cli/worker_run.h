// Runs one op of a worker in a process of its own, without a cluster. Only workers open slides.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/status.h"
#include "runtime/format/json/json.h"

namespace patchbay::cli {

/// `patchbay-worker run OP`; the op's result, or its error's text. Cancelled, with the worker gone,
/// when interrupted (see InterruptScope).
StatusOr<Json> RunWorkerOp(std::string_view op, const Json& payload, const Json& manifest);
/// The same with the own functions that it may run, NodeSettings::functions.
StatusOr<Json> RunWorkerOp(std::string_view op, const Json& payload, const Json& manifest,
                           const std::string& functions);

}  // namespace patchbay::cli
