// Errors of libjpeg, which ends a call by a longjmp. Included only by code that calls libjpeg.
#pragma once

#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

namespace patchbay::tiles {

/// The point at which a caller of libjpeg continues after an error, and the error. The caller sets
/// `jump`.
struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];

  /// The manager for a libjpeg object: errors jump, nothing is printed.
  jpeg_error_mgr* Open() {
    jpeg_std_error(&base);
    base.error_exit = Jump;
    base.output_message = [](j_common_ptr) {};
    return &base;
  }

  [[noreturn]] static void Jump(j_common_ptr object) {
    auto* errors = reinterpret_cast<JpegErrors*>(object->err);
    errors->base.format_message(object, errors->message);
    std::longjmp(errors->jump, 1);
  }
};

}  // namespace patchbay::tiles
