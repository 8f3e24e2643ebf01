// The process between one that opens an embedded cluster and the cluster's supervisor. The owner
// may be any program: with threads, children and signal handlers of its own. The launcher is single
// threaded and without libraries; it outlives the thread that started it, not the processes that
// own it.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace patchbay::workers {

struct LauncherOptions {
  pid_t owner = 0;  ///< the process that started this one
  /// A stream socket to it. Out: what the supervisor says when it is ready, a line each, then the
  /// end of the stream once nothing is left. In: kLeaveByte.
  int link_fd = -1;
  std::string folder;  ///< removed with everything in it at the end
  int lock_fd = -1;    ///< says that the folder is in use: kept open until then
  /// Abstract socket name under which more processes of this user may become owners; "" = none may.
  /// Each is told `hello` and what the supervisor said.
  std::string share;
  std::string hello;
  long stop_ms = 2'000;                 ///< for an orderly stop, before the processes are killed
  std::vector<std::string> supervisor;  ///< its command line; "--ready-fd N" is inserted
};

/// An owner needs the cluster no more.
inline constexpr char kLeaveByte = 'L';
/// Line for an owner who leaves while others stay.
inline constexpr char kLeftLine[] = "left\n";
/// Line for whoever started a launcher whose `share` is taken: another serves that name.
inline constexpr char kTakenLine[] = "taken\n";

/// Detaches from the owner (a second fork, a session of its own), runs the supervisor and ends with
/// the last owner, however that ends: by kLeaveByte, by closing the link or by dying. Call it first
/// in main. Returns the exit code.
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

  /// Becomes readable when the process ends; -1: ask Ended.
  int fd() const { return fd_; }
  bool Ended() const;

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  unsigned long long started_ = 0;  ///< clock ticks since boot; 0 = was not there
};

}  // namespace patchbay::workers
