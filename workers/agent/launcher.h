// The process between the owner of an embedded cluster and the cluster's supervisor. The owner may
// be any program, with threads, children and signal handlers of its own. The launcher is
// single-threaded and uses no libraries; it outlives the thread that started it, but not the
// processes that own it.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace patchbay::workers {

struct LauncherOptions {
  pid_t owner = 0;  ///< the process that started this one
  /// A stream socket to the owner. Out: the supervisor's lines when it is ready, then the end of
  /// the stream once no process is left. In: kLeaveByte.
  int link_fd = -1;
  std::string folder;  ///< removed with everything in it at the end
  int lock_fd = -1;    ///< marks the folder as in use; kept open until the end
  /// Abstract socket name through which further processes of this user may become owners; "" = none
  /// may. Each receives `hello` and the supervisor's lines.
  std::string share;
  std::string hello;
  long stop_ms = 2'000;                 ///< for an orderly stop, before the processes are killed
  std::vector<std::string> supervisor;  ///< its command line; "--ready-fd N" is inserted
};

/// An owner needs the cluster no more.
inline constexpr char kLeaveByte = 'L';
/// Line for an owner who leaves while others stay.
inline constexpr char kLeftLine[] = "left\n";
/// The answer to the owner of a launcher whose `share` is taken: another launcher serves that name.
inline constexpr char kTakenLine[] = "taken\n";

/// Detaches from the owner (a second fork, a session of its own), runs the supervisor and ends with
/// the last owner, which may send kLeaveByte, close the link or die. Call it first in main. Returns
/// the exit code.
int RunLauncher(const LauncherOptions& options);

/// --owner PID --link N --folder DIR --lock N [--share NAME --hello TEXT] [--stop-ms N] --
/// SUPERVISOR... False with `error` set when it is not of that form.
bool ParseLauncherArguments(const std::vector<std::string>& arguments, LauncherOptions& options,
                            std::string& error);

/// A descriptor bound to a process, or its number and start where the kernel gives none
/// (before 5.3, or a filter of system calls that answers ENOSYS or EPERM).
class OwnerWatch {
 public:
  static constexpr int kLookEveryMs = 100;  ///< at processes without a descriptor

  /// Watches the process; `ended` at once when there is none.
  explicit OwnerWatch(pid_t pid);
  OwnerWatch(OwnerWatch&& other) noexcept;
  OwnerWatch& operator=(OwnerWatch&& other) noexcept;
  ~OwnerWatch();

  /// Becomes readable when the process ends; -1: call Ended instead.
  int fd() const { return fd_; }
  bool Ended() const;

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  unsigned long long started_ = 0;  ///< clock ticks since boot; 0 = was not there
};

}  // namespace patchbay::workers
