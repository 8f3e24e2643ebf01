// Ports of Patchbay's programs, out of a /proc that the test makes.
#include "runtime/cli/cluster/exposed_ports.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

class ExposedPortsIn : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "patchbay-proc-XXXXXX";
    proc = mkdtemp(made.data());
    Write("net/tcp",
          "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout "
          "inode\n"
          "   0: 0100007F:23DA 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1\n"
          "   1: 0700000A:1DFE 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12 1\n"
          "   2: 0700000A:1DFF 0800000A:0001 01 00000000:00000000 00:00000000 00000000 0 0 13 1\n");
    Write("net/tcp6",
          "  sl  local_address                         remote_address st\n"
          "   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A "
          "00000000:00000000 00:00000000 00000000 0 0 14 1\n");
  }
  void TearDown() override { fs::remove_all(proc); }

  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((proc / name).parent_path());
    std::ofstream(proc / name) << text;
  }
  void Process(const std::string& pid, const std::string& name,
               const std::vector<std::string>& inodes) const {
    Write(pid + "/comm", name + "\n");
    fs::create_directories(proc / pid / "fd");
    for (const std::string& inode : inodes) {
      fs::create_symlink("socket:[" + inode + "]", proc / pid / "fd" / inode);
    }
  }
  /// The command line of a process.
  void Run(const std::string& pid, std::string words) const {
    std::replace(words.begin(), words.end(), ' ', '\0');
    Write(pid + "/cmdline", words + '\0');
  }

  fs::path proc;
};

TEST_F(ExposedPortsIn, NothingThatListens) {
  Process("7", "sshd", {"12"});
  Process("8", "patchbay-worker", {"13", "99"});
  EXPECT_EQ(ExposedPorts(proc), "no program of this user listens");
}

TEST_F(ExposedPortsIn, ProgramsAreThoseOfTheirSockets) {
  Process("8", "patchbay-schedu", {"11"});
  EXPECT_EQ(ExposedPorts(proc), "only this machine reaches 127.0.0.1:9178 (patchbay-schedu)");
  Run("8", "patchbay-scheduler --metrics 9178");
  EXPECT_EQ(ExposedPorts(proc), "only this machine reaches 127.0.0.1:9178 (metrics)");
  Run("8", "patchbay-scheduler --tls f --metrics-token t --metrics 127.0.0.1:9178");
  EXPECT_EQ(ExposedPorts(proc),
            "only this machine reaches 127.0.0.1:9178 (metrics over TLS, by token)");
  Run("8", "patchbay-scheduler --tls f --metrics-token t --dashboard 9178");
  EXPECT_EQ(ExposedPorts(proc), "only this machine reaches 127.0.0.1:9178 (dashboard over TLS)");
  Run("8", "patchbay-scheduler --metrics 9179");
  Process("9", "patchbay", {"12", "14"});
  EXPECT_EQ(ExposedPorts(proc),
            "other machines may reach 10.0.0.7:7678 (patchbay), [::]:8000 (patchbay); only this "
            "one reaches 127.0.0.1:9178 (patchbay-schedu)");
}

}  // namespace
}  // namespace patchbay::cli
