#include "runtime/wire/control/keys.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/hash.h"
#include "runtime/os/file.h"
#include "runtime/wire/control/address.h"
#include "runtime/wire/control/authorized_keys.h"
#include "tests/runtime/wire/control/scratch_folder.h"

namespace patchbay::control {
namespace {

KeyFile Example() {
  return {.name = "ann",
          .role = Role::kSubmitter,
          .address = "tcp://127.0.0.1:7678",
          .server_key = KeyPair::Generate().public_key,
          .pair = KeyPair::Generate(),
          .read = {"/data/slides", "/data/with space \"and\" quote"},
          .write = {"/"}};
}

TEST(KeyPair, IsNewEachTimeAndFitsTogether) {
  const KeyPair a = KeyPair::Generate(), b = KeyPair::Generate();
  EXPECT_TRUE(CheckKeyPair(a).ok());
  EXPECT_NE(a.public_key, b.public_key);
  EXPECT_FALSE(CheckKeyPair({a.public_key, b.secret_key}).ok());
  EXPECT_FALSE(CheckKeyPair({b.public_key, a.secret_key}).ok());
}

TEST(KeyText, AnythingButFortyCharactersOfZ85IsRefused) {
  const std::string good = KeyPair::Generate().public_key;
  EXPECT_TRUE(CheckKeyText(good, "k").ok());
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", std::string(40, '"'),
                                 std::string(40, '\0'), std::string(40, '#')}) {
    EXPECT_EQ(CheckKeyText(bad, "k").code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(KeyText, OneCharacterOfAnotherAlphabetIsRefusedWhereverItStands) {
  const std::string good = std::string(40, '0');
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c :
         {'"', '\'', ',', ';', '_', '`', '|', '~', '\\', ' ', '\n', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[at] = c;
      EXPECT_FALSE(CheckKeyText(bad, "k").ok()) << at << " " << static_cast<int>(c);
    }
  }
}

TEST(KeyName, OfSixtyFourCharactersThatIsNoHiddenFileAndNoFlag) {
  for (const std::string& good :
       {std::string("a"), std::string("a.b-c_D9"), std::string(64, 'x')}) {
    EXPECT_TRUE(CheckKeyName(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string(65, 'x'), std::string(".ann"), std::string("-ann"),
        std::string("a/b"), std::string("a b"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    EXPECT_EQ(CheckKeyName(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(KeyFile, ComesBackAsItWasWritten) {
  const ScratchFolder folder;
  const KeyFile key = Example();
  const std::string path = folder.Path("ann.key");
  ASSERT_TRUE(WriteKeyFile(path, key).ok());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto read = ReadKeyFile(path);
  ASSERT_TRUE(read.ok()) << Describe(read.status());
  EXPECT_EQ(read->name, key.name);
  EXPECT_EQ(read->role, key.role);
  EXPECT_EQ(read->address, key.address);
  EXPECT_EQ(read->server_key, key.server_key);
  EXPECT_EQ(read->pair.public_key, key.pair.public_key);
  EXPECT_EQ(read->pair.secret_key, key.pair.secret_key);
  EXPECT_EQ(read->read, key.read);
  EXPECT_EQ(read->write, key.write);
}

TEST(KeyFile, IsNotReplacedUnlessAskedTo) {
  const ScratchFolder folder;
  const std::string path = folder.Path("ann.key");
  ASSERT_TRUE(WriteKeyFile(path, Example()).ok());
  EXPECT_EQ(WriteKeyFile(path, Example()).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(WriteKeyFile(path, Example(), true).ok());
}

TEST(KeyFile, ThatOthersMayReadIsRefused) {
  const ScratchFolder folder;
  const std::string path = folder.Path("ann.key");
  ASSERT_TRUE(WriteKeyFile(path, Example()).ok());
  for (const mode_t mode : {0640, 0604, 0660, 0644}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(ReadKeyFile(path).status().code(), absl::StatusCode::kPermissionDenied) << mode;
  }
}

TEST(KeyFile, PassesThroughAMemfd) {
  const UniqueFd fd(memfd_create("key", MFD_CLOEXEC));
  const std::string text = FormatKeyFile(Example());
  ASSERT_TRUE(WriteAt(fd.get(), 0, AsBytes(text), "memfd").ok());
  const auto read = ReadKeyFile(StrCat("/proc/self/fd/", fd.get()));
  ASSERT_TRUE(read.ok()) << Describe(read.status());
  EXPECT_EQ(read->name, "ann");
}

TEST(KeyFile, MissingFileAndFolderAreSaid) {
  const ScratchFolder folder;
  EXPECT_EQ(ReadKeyFile(folder.Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadKeyFile(folder.Path("")).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(KeyFile, WrongFieldsAreRefusedByName) {
  const std::string good = FormatKeyFile(Example());
  const auto with = [&](std::string_view field, std::string_view line) {
    std::string text = good;
    const auto start = text.find(StrCat("\n", field, ":")) + 1;
    return text.replace(start, text.find('\n', start) - start, line);
  };
  struct Case {
    std::string text, mentions;
  };
  for (const Case& each :
       {Case{with("role", "role: king"), "role"}, Case{with("address", "address: http://x"), "tcp"},
        Case{with("address", "address: tcp://example.org:1"), "numeric"},
        Case{with("server_key", "server_key: short"), "server_key"},
        Case{with("secret_key", StrCat("secret_key: \"", KeyPair::Generate().secret_key, "\"")),
             "secret_key"},
        Case{with("name", "name: ../x"), "name"},
        Case{with("read", "read: [relative]"), "absolute"},
        Case{with("write", "write: [\"/a/../b\"]"), ".."}, Case{with("name", "naem: ann"), "naem"},
        Case{with("name", "# gone"), "name"}, Case{"", "name"}, Case{"{", ""}}) {
    const auto read = ParseKeyFile(each.text);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << each.text;
    EXPECT_NE(MessageOf(read.status()).find(each.mentions), std::string_view::npos)
        << MessageOf(read.status());
    EXPECT_EQ(MessageOf(read.status()).find(Example().pair.secret_key), std::string_view::npos);
  }
}

TEST(Prefix, MustBeAbsoluteAndNormal) {
  const std::string longest = "/" + std::string(4095, 'a');
  for (const std::string& good : {std::string("/"), std::string("/a"), std::string("/a/b c"),
                                  std::string("/a..b"), longest}) {
    EXPECT_TRUE(CheckPrefix(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("a"), std::string("/a/"), std::string("//a"),
        std::string("/a/."), std::string("/a/./b"), std::string("/.."), std::string("/a/.."),
        std::string("/a/../b"), std::string("/a\0b", 4), longest + "a"}) {
    EXPECT_FALSE(CheckPrefix(bad).ok()) << bad;
  }
}

TEST(Prefix, ThatEndsWithASlashIsToldSo) {
  EXPECT_NE(MessageOf(CheckPrefix("/a/")).find("must not end with '/'"), std::string_view::npos);
}

TEST(Home, MakesItsFoldersForTheOwnerAlone) {
  const ScratchFolder folder;
  const std::string path = folder.Path("home");
  ASSERT_TRUE(Home::Open(path).ok());
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_EQ(Home::Open(path).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(Home, GivesTheSameServerKeyEveryTime) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  const auto first = home->ServerKey(), second = home->ServerKey();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->public_key, second->public_key);
  EXPECT_TRUE(ReadServerKey(home->ServerKeyPath()).ok());
}

TEST(Home, NewKeyIsInTheTableWithoutItsSecret) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  const auto key = home->NewKey({.name = "node-1",
                                 .role = Role::kWorker,
                                 .address = "ipc://@x",
                                 .read = {"/data"},
                                 .write = {"/out"}});
  ASSERT_TRUE(key.ok()) << Describe(key.status());
  const auto table = home->LoadKeys();
  ASSERT_TRUE(table.ok()) << Describe(table.status());
  const KnownKey* known = table->FindByPublicKey(key->pair.public_key);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->name, "node-1");
  EXPECT_EQ(known->role, Role::kWorker);
  EXPECT_EQ(known->read, std::vector<std::string>{"/data"});
  EXPECT_EQ(known->write, std::vector<std::string>{"/out"});
  EXPECT_FALSE(known->revoked);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home->folder())) {
    if (!entry.is_regular_file()) continue;
    const auto text = ReadFile(Folders::OfThisUser(), entry.path(), 1 << 20);
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(text->find(key->pair.secret_key), std::string::npos) << entry.path();
  }
}

TEST(Home, TakenNamesStayTakenAfterRevocation) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  ASSERT_TRUE(home->NewKey({.name = "ann", .address = "ipc://@x"}).ok());
  EXPECT_EQ(home->NewKey({.name = "ann", .address = "ipc://@x"}).status().code(),
            absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(home->Revoke("ann").ok());
  EXPECT_TRUE(home->LoadKeys()->FindByName("ann")->revoked);
  EXPECT_EQ(home->NewKey({.name = "ann", .address = "ipc://@x"}).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(home->Revoke("bob").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(home->Revoke("../ann").code(), absl::StatusCode::kInvalidArgument);
}

TEST(Home, KeyWhoseFileCannotBeWrittenTakesNoName) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  const std::string path = folder.Path("bob.key");
  Home::NewKeyRequest request{
      .name = "bob", .address = "ipc://@x", .path = folder.Path("no/b.key")};
  EXPECT_EQ(home->NewKey(request).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(home->LoadKeys()->FindByName("bob"), nullptr);
  request.path = path;
  const auto key = home->NewKey(request);
  ASSERT_TRUE(key.ok()) << Describe(key.status());
  EXPECT_EQ(ReadKeyFile(path)->pair.secret_key, key->pair.secret_key);
  request.name = "eve";
  EXPECT_EQ(home->NewKey(request).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(home->LoadKeys()->FindByName("eve"), nullptr);
  EXPECT_EQ(ReadKeyFile(path)->name, "bob");
}

TEST(Home, KeyThatIsNotInTheTableLeavesNoFile) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  std::filesystem::remove(home->KeysFolder());
  const std::string path = folder.Path("bob.key");
  EXPECT_FALSE(home->NewKey({.name = "bob", .address = "ipc://@x", .path = path}).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Home, RenewedKeyTakesThePlaceOfTheOneBefore) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  const Home::NewKeyRequest request{
      .name = "operator", .address = "ipc://@x", .path = folder.Path("operator.key")};
  const auto first = home->RenewKey(request);
  ASSERT_TRUE(first.ok()) << Describe(first.status());
  ASSERT_TRUE(home->Revoke("operator").ok());
  const auto second = home->RenewKey(request);
  ASSERT_TRUE(second.ok()) << Describe(second.status());
  const auto table = home->LoadKeys();
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->FindByPublicKey(first->pair.public_key), nullptr);
  EXPECT_FALSE(table->FindByName("operator")->revoked);
  EXPECT_EQ(table->FindByName("operator")->public_key, second->pair.public_key);
  EXPECT_EQ(ReadKeyFile(request.path)->pair.public_key, second->pair.public_key);
}

TEST(AuthorizedKeys, OneBadFileFailsTheLoadByName) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  ASSERT_TRUE(home->NewKey({.name = "ann", .address = "ipc://@x"}).ok());
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), StrCat(home->KeysFolder(), "/bob.yaml"),
                               AsBytes("name: bob\n"), 0600)
                  .ok());
  const auto table = home->LoadKeys();
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(table.status()).find("bob"), std::string_view::npos);
}

TEST(AuthorizedKeys, FileWithAKeyOrAFolderThatCannotBeIsRefused) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  const std::string path = StrCat(home->KeysFolder(), "/bob.yaml");
  const std::string key = StrCat("public_key: '", KeyPair::Generate().public_key, "'\n");
  const auto loads = [&](const std::string& rest) {
    const std::string text = StrCat("name: bob\nrole: worker\n", rest);
    EXPECT_TRUE(WriteFileDurably(Folders::OfThisUser(), path, AsBytes(text), 0600).ok());
    return home->LoadKeys().ok();
  };
  EXPECT_TRUE(loads(key));
  EXPECT_FALSE(loads("public_key: short\n"));
  EXPECT_FALSE(loads(StrCat(key, "read: [data]\n")));
  EXPECT_FALSE(loads(StrCat(key, "write: [/data/../x]\n")));
}

TEST(AuthorizedKeys, HiddenFilesAreNotKeys) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  const std::string left = StrCat(home->KeysFolder(), "/.bob.yaml");  // by an editor
  ASSERT_TRUE(WriteFileDurably(Folders::OfThisUser(), left, AsBytes("half a li"), 0600).ok());
  EXPECT_TRUE(home->LoadKeys().ok());
}

TEST(AuthorizedKeys, HoldsTenThousandKeysAndNoMore) {
  std::vector<KnownKey> keys;
  for (std::size_t i = 0; i < kMaxKeys; ++i) {
    keys.push_back({.name = StrCat("n", i), .public_key = StrCat("k", i)});
  }
  EXPECT_TRUE(AuthorizedKeys::Of(keys).ok());
  keys.push_back({.name = "one", .public_key = "more"});
  EXPECT_EQ(AuthorizedKeys::Of(keys).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(AuthorizedKeys, FileUnderAnotherNameIsRefused) {
  const ScratchFolder folder;
  const auto home = Home::Open(folder.Path("home"));
  ASSERT_TRUE(home.ok());
  ASSERT_TRUE(home->NewKey({.name = "ann", .address = "ipc://@x"}).ok());
  std::filesystem::rename(StrCat(home->KeysFolder(), "/ann.yaml"),
                          StrCat(home->KeysFolder(), "/bob.yaml"));
  EXPECT_FALSE(home->LoadKeys().ok());
}

TEST(AuthorizedKeys, RepeatedNamesAndKeysAreRefused) {
  const std::string key = KeyPair::Generate().public_key;
  const std::string other = KeyPair::Generate().public_key;
  EXPECT_FALSE(
      AuthorizedKeys::Of({{.name = "a", .public_key = key}, {.name = "b", .public_key = key}})
          .ok());
  EXPECT_FALSE(
      AuthorizedKeys::Of({{.name = "a", .public_key = key}, {.name = "a", .public_key = other}})
          .ok());
}

TEST(Address, IsNumericOrAnAbstractSocket) {
  for (const char* good : {"tcp://127.0.0.1:7678", "tcp://[::1]:1", "ipc://@patchbay-12.x_y",
                           "tcp://10.0.0.1:*", "tcp://8.8.8.8:65535"}) {
    const auto address = ParseAddress(good);
    ASSERT_TRUE(address.ok()) << good;
    EXPECT_EQ(address->ToString(), good);
  }
  for (const char* bad :
       {"", "127.0.0.1:1", "tcp://localhost:1", "tcp://127.0.0.1", "tcp://1.2.3:4",
        "tcp://127.0.0.1:65536", "tcp://127.0.0.1:-1", "tcp://127.0.0.1:", "ipc:///tmp/x",
        "ipc://@", "ipc://@a/b", "udp://127.0.0.1:1", "tcp://127.0.0.1:1;tcp://8.8.8.8:1",
        "tcp://eth0:1", "tcp://*:1", "tcp://127.0.0.1:80x", "tcp://127.0.0.1:8 "}) {
    EXPECT_EQ(ParseAddress(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(Address, OfASocketHasNinetyCharactersAtMost) {
  EXPECT_TRUE(ParseAddress(StrCat("ipc://@", std::string(90, 'x'))).ok());
  EXPECT_FALSE(ParseAddress(StrCat("ipc://@", std::string(91, 'x'))).ok());
}

TEST(Address, KnowsWhatIsPrivate) {
  for (const char* in :
       {"tcp://127.0.0.1:1", "tcp://10.255.0.1:1", "tcp://172.16.0.1:1", "tcp://172.31.255.255:1",
        "tcp://192.168.1.1:1", "tcp://169.254.1.1:1", "tcp://100.64.0.1:1", "tcp://[::1]:1",
        "tcp://[fe80::1]:1", "tcp://[fd00::1]:1", "tcp://[::ffff:10.0.0.1]:1", "ipc://@x"}) {
    EXPECT_TRUE(IsPrivate(*ParseAddress(in))) << in;
  }
  for (const char* out :
       {"tcp://8.8.8.8:1", "tcp://0.0.0.0:1", "tcp://[::]:1", "tcp://172.32.0.1:1",
        "tcp://172.15.0.1:1", "tcp://192.169.0.1:1", "tcp://100.128.0.1:1", "tcp://[2001:db8::1]:1",
        "tcp://[::ffff:8.8.8.8]:1"}) {
    EXPECT_FALSE(IsPrivate(*ParseAddress(out))) << out;
  }
}

}  // namespace
}  // namespace patchbay::control
