#include "workers/functions/function_limits.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace patchbay::workers {
namespace {

constexpr std::uint32_t kX32Calls = 0x40000000;
constexpr std::uint32_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
constexpr std::uint32_t kSharedNameless = MAP_SHARED | MAP_ANONYMOUS;

// Calls that headers of older kernels lack.
constexpr long kIoUringSetup = 425, kIoUringEnter = 426, kIoUringRegister = 427, kOpenTree = 428,
               kMoveMount = 429, kFsopen = 430, kFsmount = 432, kPidfdOpen = 434, kClone3 = 435,
               kOpenat2 = 437, kPidfdGetfd = 438, kProcessMadvise = 440, kMountSetattr = 442,
               kLandlockRestrict = 446, kMemfdSecret = 447, kFchmodat2 = 452;

/// Answered with EPERM, whatever the arguments.
constexpr long kRefused[] = {
    // Other processes and other machines.
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvmsg, SYS_recvmmsg, SYS_ptrace,
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_tkill, SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo, SYS_pidfd_send_signal, kPidfdOpen, kPidfdGetfd, SYS_kcmp,
    kProcessMadvise, SYS_shmget, SYS_shmat, SYS_msgget, SYS_semget, SYS_mq_open, kIoUringSetup,
    kIoUringEnter, kIoUringRegister, SYS_perf_event_open, SYS_bpf, SYS_userfaultfd, SYS_add_key,
    SYS_request_key, SYS_keyctl, SYS_migrate_pages, SYS_move_pages, SYS_setpriority,
    // New processes, programs and namespaces.
    SYS_fork, SYS_vfork, SYS_execveat, SYS_unshare, SYS_setns, SYS_personality,
    // Memory that RLIMIT_DATA does not count, and that limit.
    SYS_memfd_create, kMemfdSecret, SYS_setrlimit, SYS_remap_file_pages,
    // Files: names, contents, rights, file systems.
    SYS_creat, SYS_truncate, SYS_ftruncate, SYS_fallocate, SYS_rename, SYS_renameat, SYS_renameat2,
    SYS_unlink, SYS_unlinkat, SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_link, SYS_linkat, SYS_symlink,
    SYS_symlinkat, SYS_mknod, SYS_mknodat, SYS_chmod, SYS_fchmod, SYS_fchmodat, kFchmodat2,
    SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat, SYS_utime, SYS_utimes, SYS_futimesat,
    SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr,
    SYS_fremovexattr, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_mount, SYS_umount2,
    SYS_pivot_root, SYS_chroot, kOpenTree, kMoveMount, kFsopen, kFsmount, kMountSetattr,
    kLandlockRestrict, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_acct,
    // The machine, and who the process is.
    SYS_reboot, SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module,
    SYS_delete_module, SYS_iopl, SYS_ioperm, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex,
    SYS_clock_adjtime, SYS_sethostname, SYS_setdomainname, SYS_syslog, SYS_setuid, SYS_setgid,
    SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid,
    SYS_setgroups, SYS_capset};

/// Answered as a kernel without them would: C libraries then use the calls that came before.
constexpr long kUnknown[] = {kClone3, kOpenat2};

sock_filter Statement(int code, std::uint32_t k) {
  return {static_cast<std::uint16_t>(code), 0, 0, k};
}

sock_filter Jump(int condition, std::uint32_t k, std::uint8_t if_true, std::uint8_t if_false) {
  return {static_cast<std::uint16_t>(BPF_JMP | condition | BPF_K), if_true, if_false, k};
}

sock_filter Load(std::size_t offset) {
  return Statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

/// The low half of an argument; the high one lies 4 bytes further.
std::size_t OffsetOf(int argument) {
  return offsetof(seccomp_data, args) + static_cast<std::size_t>(argument) * sizeof(std::uint64_t);
}

sock_filter Refuse(int error) {
  return Statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
}

sock_filter Allow() { return Statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }

/// Instructions behind a jump on the call's number; they return in every case.
using Rule = std::vector<sock_filter>;

Rule RefuseIfAny(int argument, std::uint32_t bits, int error) {
  return {Load(OffsetOf(argument)), Jump(BPF_JSET, bits, 0, 1), Refuse(error), Allow()};
}

Rule RefuseUnlessAny(int argument, std::uint32_t bits, int error) {
  return {Load(OffsetOf(argument)), Jump(BPF_JSET, bits, 1, 0), Refuse(error), Allow()};
}

Rule RefuseIfAll(int argument, std::uint32_t bits, int error) {
  return {Load(OffsetOf(argument)), Statement(BPF_ALU | BPF_AND | BPF_K, bits),
          Jump(BPF_JEQ, bits, 0, 1), Refuse(error), Allow()};
}

Rule RefuseIfEqual(int argument, std::uint32_t value, int error) {
  return {Load(OffsetOf(argument)), Jump(BPF_JEQ, value, 0, 1), Refuse(error), Allow()};
}

/// Both halves of the argument.
Rule RefuseUnlessEqual(int argument, std::uint64_t value, int error) {
  return {Load(OffsetOf(argument)),
          Jump(BPF_JEQ, static_cast<std::uint32_t>(value), 0, 3),
          Load(OffsetOf(argument) + 4),
          Jump(BPF_JEQ, static_cast<std::uint32_t>(value >> 32), 0, 1),
          Allow(),
          Refuse(error)};
}

}  // namespace

SyscallFilter SyscallFilter::For(const char* program) {
  SyscallFilter filter;
  std::vector<sock_filter>& code = filter.code_;
  const auto add = [&code](long call, const Rule& rule) {
    code.push_back(
        Jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, static_cast<std::uint8_t>(rule.size())));
    code.insert(code.end(), rule.begin(), rule.end());
    // A rule that loaded an argument returned; the number is still loaded for the next one.
  };
  code = {Load(offsetof(seccomp_data, arch)),
          Jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
          Statement(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
          Load(offsetof(seccomp_data, nr)),
          Jump(BPF_JGE, kX32Calls, 0, 1),
          Refuse(ENOSYS)};
  for (const long call : kUnknown) add(call, {Refuse(ENOSYS)});
  for (const long call : {SYS_kill, SYS_tgkill}) {
    add(call, RefuseUnlessEqual(0, 0, EPERM));
    filter.own_pid_.push_back(code.size() - 5);
  }
  add(SYS_execve, RefuseUnlessEqual(0, reinterpret_cast<std::uintptr_t>(program), EPERM));
  add(SYS_clone, RefuseUnlessAny(0, CLONE_THREAD, EPERM));
  add(SYS_mmap, RefuseIfAll(3, kSharedNameless, ENOMEM));
  add(SYS_open, RefuseIfAny(1, kWrites, EACCES));
  add(SYS_openat, RefuseIfAny(2, kWrites, EACCES));
  add(SYS_prctl, RefuseIfEqual(0, PR_SET_PDEATHSIG, EPERM));
  add(SYS_prlimit64, RefuseUnlessEqual(2, 0, EPERM));
  for (const long call : kRefused) add(call, {Refuse(EPERM)});
  code.push_back(Allow());
  return filter;
}

bool SyscallFilter::Install() {
  const auto pid = static_cast<std::uint32_t>(getpid());
  for (const std::size_t at : own_pid_) code_[at].k = pid;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool LimitResources(std::uint64_t memory_bytes) {
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) != 0) return false;
  data.rlim_cur = data.rlim_max = std::min<rlim_t>(memory_bytes, data.rlim_max);
  const rlimit said{kMaxSaidBytes, kMaxSaidBytes}, none{0, 0};
  return setrlimit(RLIMIT_DATA, &data) == 0 && setrlimit(RLIMIT_FSIZE, &said) == 0 &&
         setrlimit(RLIMIT_CORE, &none) == 0;
}

}  // namespace patchbay::workers
