// Descriptors 0, 1 and 2 of a program. In a header, so that a program without libraries has it too.
#pragma once

#include <initializer_list>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

namespace patchbay {

/// Opens /dev/null for whichever of standard input, output and error the program was started
/// without. The first thing every main does: otherwise the next file or socket gets the number, and
/// what is meant for the terminal is written into it. Ends the program when it cannot.
inline void OpenClosedStandardStreams() {
  for (const int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The kernel gives the lowest free number: this one, as those below are open.
    if (fcntl(wanted, F_GETFD) < 0 && open("/dev/null", O_RDWR) != wanted) _exit(EXIT_FAILURE);
  }
}

}  // namespace patchbay
