// Errors are values. The code follows from the caller's next step (see runtime/README.md); the text
// is `doing: subject: cause`, lower case, no full stop.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/core/strings.h"

namespace patchbay {

using absl::Status;
using absl::StatusOr;

namespace status_internal {

/// The type of InvalidArgument and its kin, which are called like functions.
template <absl::StatusCode code>
struct MakeError {
  template <typename... Pieces>
  [[nodiscard]] Status operator()(const Pieces&... pieces) const {
    return {code, StrCat(pieces...)};
  }
};

}  // namespace status_internal

/// InvalidArgument("open: ", path, ": ", cause): an error of that code; its text is their StrCat.
inline constexpr status_internal::MakeError<absl::StatusCode::kInvalidArgument> InvalidArgument;
inline constexpr status_internal::MakeError<absl::StatusCode::kFailedPrecondition>
    FailedPrecondition;
inline constexpr status_internal::MakeError<absl::StatusCode::kNotFound> NotFound;
inline constexpr status_internal::MakeError<absl::StatusCode::kAlreadyExists> AlreadyExists;
inline constexpr status_internal::MakeError<absl::StatusCode::kPermissionDenied> PermissionDenied;
inline constexpr status_internal::MakeError<absl::StatusCode::kDataLoss> DataLoss;
inline constexpr status_internal::MakeError<absl::StatusCode::kResourceExhausted> ResourceExhausted;
inline constexpr status_internal::MakeError<absl::StatusCode::kUnavailable> Unavailable;
inline constexpr status_internal::MakeError<absl::StatusCode::kDeadlineExceeded> DeadlineExceeded;
inline constexpr status_internal::MakeError<absl::StatusCode::kUnimplemented> Unimplemented;
inline constexpr status_internal::MakeError<absl::StatusCode::kInternal> Internal;
inline constexpr status_internal::MakeError<absl::StatusCode::kAborted> Aborted;
inline constexpr status_internal::MakeError<absl::StatusCode::kCancelled> Cancelled;

/// Puts `context` before the message of a failed status, keeping its code and its subject: "read
/// chunk: a/b: <cause>".
Status Annotate(const Status& status, std::string_view context);

/// FromErrno("open", path, errno): NotFound for ENOENT, PermissionDenied for EACCES/EPERM,
/// ResourceExhausted for ENOSPC/EDQUOT/EFBIG/EMFILE/ENOMEM, otherwise Internal; text "open:
/// path: strerror". The subject is carried apart (outcome.h).
Status FromErrno(std::string_view doing, std::string_view subject, int error_number);

}  // namespace patchbay

#define PB_CONCAT_INNER(a, b) a##b
#define PB_CONCAT(a, b) PB_CONCAT_INNER(a, b)

/// Returns from the enclosing function when the expression is an error.
#define PB_RETURN_IF_ERROR(expr)                    \
  do {                                              \
    if (auto pb_status = (expr); !pb_status.ok()) { \
      return pb_status;                             \
    }                                               \
  } while (false)

/// PB_ASSIGN_OR_RETURN(auto x, F()): x is F's value, or the enclosing function returns F's error.
#define PB_ASSIGN_OR_RETURN(lhs, expr) PB_ASSIGN_IMPL(PB_CONCAT(pb_or_, __LINE__), lhs, expr)
#define PB_ASSIGN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                   \
  if (!tmp.ok()) return tmp.status();  \
  lhs = std::move(tmp).value()

/// For our bugs only, never for input: prints file, line and text, and aborts.
#define PB_CHECK(condition)                                                    \
  do {                                                                         \
    if (!(condition)) ::patchbay::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (false)

namespace patchbay {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace patchbay
