#include "tests/emulated_cuda/emulation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace patchbay::emulated_cuda {
namespace {

std::uint64_t Number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

Pace PaceOf(std::uint64_t seed) {
  const char* text = std::getenv("PATCHBAY_EMULATED_GPU_PACE");
  if (text == nullptr) return std::array{Pace::kEager, Pace::kLazy, Pace::kRandom}[seed % 3];
  switch (*text) {
    case 'e':
      return Pace::kEager;
    case 'l':
      return Pace::kLazy;
    default:
      return Pace::kRandom;
  }
}

Settings Read() {
  Settings s;
  s.devices =
      static_cast<int>(std::min<std::uint64_t>(Number("PATCHBAY_EMULATED_GPUS", 0), kMaxDevices));
  s.seed = Number("PATCHBAY_EMULATED_GPU_SEED", s.seed);
  s.pace = PaceOf(s.seed);
  s.memory_bytes = Number("PATCHBAY_EMULATED_GPU_BYTES", s.memory_bytes);
  s.out_of_memory_after = Number("PATCHBAY_EMULATED_GPU_OOM_AFTER", s.out_of_memory_after);
  s.lost_after = Number("PATCHBAY_EMULATED_GPU_LOST_AFTER", s.lost_after);
  if (const char* fault = std::getenv("PATCHBAY_EMULATED_GPU_FAULT")) s.fault = fault;
  if (const char* folder = std::getenv("PATCHBAY_EMULATED_GPU_TIMELINE")) s.timeline = folder;
  return s;
}

/// The symbol table of this program's file, mapped for good.
struct Symbols {
  const Elf64_Sym* table = nullptr;
  std::size_t count = 0;
  const char* names = nullptr;
};

Symbols ReadSymbols() {
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) return {};
  void* file =
      ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (file == MAP_FAILED) return {};
  const auto* base = static_cast<const char*>(file);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(base + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    return {reinterpret_cast<const Elf64_Sym*>(base + sections[i].sh_offset),
            sections[i].sh_size / sizeof(Elf64_Sym),
            base + sections[sections[i].sh_link].sh_offset};
  }
  return {};
}

std::uint64_t LoadAddress() {
  std::uint64_t base = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* loaded, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = loaded->dlpi_addr;
        return 1;  // the first is the program
      },
      &base);
  return base;
}

}  // namespace

const Settings& TheSettings() {
  static const Settings settings = Read();
  return settings;
}

std::recursive_mutex& TheLock() {
  static auto* lock = new std::recursive_mutex;  // never destroyed: frees at exit come late
  return *lock;
}

std::uint64_t Roll() {
  static std::uint64_t state = TheSettings().seed * 0x9E3779B97F4A7C15u;
  std::uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Report(const std::string& what) {
  std::string text = "emulated cuda: " + what;
  const std::string running = Running();
  if (!running.empty()) text += ": " + running;
  text += " (seed " + std::to_string(TheSettings().seed) + ")\n";
  (void)!::write(STDERR_FILENO, text.data(), text.size());
  std::abort();
}

std::string SymbolOf(const void* address) {
  static const Symbols symbols = ReadSymbols();
  const std::uint64_t wanted = reinterpret_cast<std::uint64_t>(address) - LoadAddress();
  for (std::size_t i = 0; i < symbols.count; ++i) {
    const Elf64_Sym& symbol = symbols.table[i];
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value != wanted) continue;
    const char* name = symbols.names + symbol.st_name;
    int status = 0;
    char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string text = status == 0 ? plain : name;
    std::free(plain);
    constexpr std::string_view kUnnamed = "(anonymous namespace)::";
    for (auto at = text.find(kUnnamed); at != text.npos; at = text.find(kUnnamed)) {
      text.erase(at, kUnnamed.size());
    }
    return text.substr(0, text.find('('));
  }
  return "at an unknown address";
}

}  // namespace patchbay::emulated_cuda
