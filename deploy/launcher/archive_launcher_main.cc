// The programs in bin/ of an archive made by deploy/bundle: starts libexec/<own name> under the
// archive's own loader and libraries, wherever the archive lies. Static, so that it runs on any
// Linux whatever C library is there.
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace {

constexpr int kMaxArguments = 4096;
constexpr int kOwnArguments = 6;  ///< arguments before the user's
constexpr int kPathBytes = PATH_MAX + 64;

/// Cuts the last component off `path` and returns it; null when there is none.
char* CutLast(char* path) {
  char* slash = strrchr(path, '/');
  if (slash == nullptr) return nullptr;
  *slash = '\0';
  return slash + 1;
}

int Fail(const char* doing, const char* subject) {
  fprintf(stderr, "patchbay launcher: %s: %s\n", doing, subject);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  static char root[PATH_MAX];
  static char loader[kPathBytes], libraries[kPathBytes], program[kPathBytes + NAME_MAX];
  static char* arguments[kMaxArguments + kOwnArguments + 1];

  const ssize_t length = readlink("/proc/self/exe", root, sizeof(root) - 1);
  if (length < 0) return Fail("read own place", "/proc/self/exe (is /proc mounted?)");
  const char* name = CutLast(root);
  if (name == nullptr || CutLast(root) == nullptr) return Fail("not in an archive's bin", argv[0]);
  if (argc > kMaxArguments) return Fail("too many arguments", argv[0]);

  snprintf(loader, sizeof(loader), "%s/lib/ld-linux-x86-64.so.2", root);
  snprintf(libraries, sizeof(libraries), "%s/lib", root);
  snprintf(program, sizeof(program), "%s/libexec/%s", root, name);
  static char argv0_flag[] = "--argv0", path_flag[] = "--library-path";
  int n = 0;
  arguments[n++] = loader;
  arguments[n++] = argv0_flag;
  arguments[n++] = argv[0];
  arguments[n++] = path_flag;
  arguments[n++] = libraries;
  arguments[n++] = program;
  for (int i = 1; i < argc; ++i) arguments[n++] = argv[i];
  arguments[n] = nullptr;
  execv(loader, arguments);
  return Fail("start", loader);
}
