#include "scheduler/journal/database.h"

#include <cerrno>
#include <vector>

#include <endian.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "runtime/core/other_version.h"
#include "runtime/os/file.h"
#include "scheduler/state/records.h"

namespace patchbay::scheduler {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
/// Places of two big-endian numbers in a file's header (sqlite.org/fileformat2.html).
constexpr off_t kVersionAt = 60, kApplicationAt = 68;
constexpr std::uint32_t kApplication = 1346524489;
/// A snapshot lies in pieces: SQLite takes no value of more than 1,000,000,000 bytes.
constexpr std::size_t kPieceBytes = 16u << 20;
constexpr char kSchema[] =
    "PRAGMA page_size=4096;"
    "PRAGMA locking_mode=EXCLUSIVE;"
    "PRAGMA journal_mode=WAL;"
    "PRAGMA synchronous=FULL;"
    "PRAGMA wal_autocheckpoint=4000;"
    "CREATE TABLE IF NOT EXISTS records(sequence INTEGER PRIMARY KEY, bytes BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS pieces(number INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, "
    "bytes BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS seal(key_id TEXT NOT NULL);";

/// The associated data of a sealed row: number 0 is a record, the others are pieces of the
/// snapshot.
std::uint64_t PlaceOf(std::uint64_t sequence, std::uint64_t number) {
  return sequence << 16 | number;
}

/// `found` is SQLite's report, in lines; only a page that it names helps a user.
Status DamagedDatabase(const std::string& path, std::string_view found) {
  constexpr std::string_view kPage = "page ";
  std::string where;
  std::size_t digit = absl::AsciiStrToLower(std::string(found)).find(kPage);
  if (digit != std::string::npos) {
    for (digit += kPage.size(); digit < found.size() && absl::ascii_isdigit(found[digit]);
         ++digit) {
      where += found[digit];
    }
  }
  if (!where.empty()) where = StrCat(" (page ", where, ")");
  return DataLoss("open journal: ", path, ": damaged", where,
                  ": put a copy of it back, or move the folder away to start without its jobs");
}

/// SQLite does not report the system's error.
std::string FileLimitAdvice() {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return StrCat("; files are limited to ", limit.rlim_cur,
                " bytes here: if that is the cause, raise it (ulimit -f)");
}

Status FromSqlite(int code, std::string_view doing, const std::string& path, const char* text) {
  const std::string message =
      StrCat(doing, " journal: ", path, ": ", text == nullptr ? "unknown" : text);
  switch (code & 0xFF) {
    case SQLITE_FULL:
      return ResourceExhausted(message,
                               ": free space there; nothing that was acknowledged is lost");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Unavailable(message, " (another scheduler uses it)");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DamagedDatabase(path, text == nullptr ? "" : text);
    case SQLITE_IOERR:
      return Internal(message + FileLimitAdvice());
    default:
      return Internal(message);
  }
}

std::string_view FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? std::string_view("/") : std::string_view(path).substr(0, slash);
}

/// The text of the first column of the first row of `sql`.
std::string FirstText(sqlite3* handle, const char* sql) {
  sqlite3_stmt* statement = nullptr;
  std::string text;
  if (sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW) {
    const auto* column = sqlite3_column_text(statement, 0);
    if (column != nullptr) text = reinterpret_cast<const char*>(column);
  }
  sqlite3_finalize(statement);
  return text;
}

std::uint32_t NumberAt(const UniqueFd& file, off_t offset) {
  std::uint32_t number = 0;
  if (pread(file.get(), &number, sizeof(number), offset) != sizeof(number)) return 0;
  return be32toh(number);
}

/// `user_version`, read before SQLite writes anything; 0 = not known, for which earlier releases
/// left it too.
StatusOr<std::uint32_t> VersionOf(const UniqueFd& file, const std::string& path) {
  if (NumberAt(file, kApplicationAt) != kApplication) return 0;
  const std::uint32_t version = NumberAt(file, kVersionAt);
  if (version <= kRecordVersion) return version;
  return FailedPrecondition("open journal: ", path, ": ",
                            OtherVersion(version, StrCat("1 to ", kRecordVersion),
                                         StrCat(kTakeItsRelease,
                                                ", or move the folder away to "
                                                "start without its jobs")));
}

}  // namespace

Status CheckFileSystem(const std::string& folder) {
  struct statfs found {};
  if (statfs(folder.c_str(), &found) != 0) return FromErrno("open journal", folder, errno);
  switch (static_cast<std::uint32_t>(found.f_type)) {
    case 0x6969u:      // NFS
    case 0xFF534D42u:  // CIFS
    case 0xFE534D42u:  // SMB2
    case 0x517Bu:      // SMB
    case 0x01021997u:  // 9p
    case 0x5346414Fu:  // AFS
      return Unimplemented("open journal: ", folder,
                           ": the folder is on a network file system, which cannot hold the "
                           "journal; choose a local one with --state");
    default:
      return absl::OkStatus();
  }
}

Database::Database(std::string path, sqlite3* handle, std::string_view secret)
    : path_(std::move(path)), handle_(handle), sealer_(secret, "journal") {}

StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                   std::uint64_t file_bytes_max,
                                                   std::string_view secret) {
  PB_RETURN_IF_ERROR(CheckFileSystem(std::string(FolderOf(path))));
  std::uint32_t version = 0;
  {
    PB_ASSIGN_OR_RETURN(const UniqueFd created,
                        OpenFile(Folders::OfThisProcess(), path, O_RDWR | O_CREAT, 0600));
    PB_ASSIGN_OR_RETURN(version, VersionOf(created, path));
    if (fchmod(created.get(), 0600) != 0) return FromErrno("open journal", path, errno);
  }
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  std::unique_ptr<Database> database(new Database(path, handle, secret));
  if (code != SQLITE_OK) return FromSqlite(code, "open", path, sqlite3_errstr(code));
  sqlite3_extended_result_codes(handle, 1);
  PB_RETURN_IF_ERROR(database->Run(kSchema));
  PB_RETURN_IF_ERROR(database->Run("BEGIN EXCLUSIVE; COMMIT;"));
  const std::string found = FirstText(handle, "PRAGMA integrity_check(1)");
  if (found != "ok") return DamagedDatabase(path, found);
  if (FirstText(handle, "PRAGMA journal_mode") != "wal") {
    return Internal("open journal: ", path, ": no write-ahead log here");
  }
  const std::string pages = StrCat("PRAGMA max_page_count=", file_bytes_max / kPageBytes, ";");
  PB_RETURN_IF_ERROR(database->Run(pages.c_str()));
  PB_RETURN_IF_ERROR(database->Prepare());
  PB_RETURN_IF_ERROR(database->TakeKey());
  if (version != kRecordVersion) PB_RETURN_IF_ERROR(database->SetVersion());
  PB_RETURN_IF_ERROR(SyncDirectory(Folders::OfThisProcess(), std::string(FolderOf(path))));
  return database;
}

Database::~Database() {
  sqlite3_finalize(insert_);
  sqlite3_finalize(insert_piece_);
  sqlite3_close(handle_);
}

Status Database::Error(std::string_view doing) const {
  return FromSqlite(sqlite3_extended_errcode(handle_), doing, path_, sqlite3_errmsg(handle_));
}

Status Database::Run(const char* sql) {
  return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? absl::OkStatus()
                                                                            : Error("write");
}

Status Database::Prepare() {
  const auto prepare = [&](const char* sql, sqlite3_stmt** statement) {
    return sqlite3_prepare_v3(handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, nullptr) ==
           SQLITE_OK;
  };
  const bool ok = prepare("INSERT INTO records VALUES(?2, ?3)", &insert_) &&
                  prepare("INSERT INTO pieces VALUES(?1, ?2, ?3)", &insert_piece_);
  return ok ? absl::OkStatus() : Error("open");
}

Status Database::TakeKey() {
  const std::string found = FirstText(handle_, "SELECT key_id FROM seal");
  if (found == sealer_.key_id()) return absl::OkStatus();
  if (!found.empty()) {
    return FailedPrecondition("open journal: ", path_,
                              ": it was sealed with another server key: put that key back, or move "
                              "the state folder away to start without its jobs");
  }
  PB_RETURN_IF_ERROR(Overwrite(true));
  PB_RETURN_IF_ERROR(Begin());
  PB_RETURN_IF_ERROR(SealClearRows());
  PB_RETURN_IF_ERROR(SealClearSnapshot());
  PB_RETURN_IF_ERROR(Run(StrCat("INSERT INTO seal VALUES('", sealer_.key_id(), "')").c_str()));
  PB_RETURN_IF_ERROR(Commit());
  PB_RETURN_IF_ERROR(Overwrite(false));
  return Checkpoint();
}

Status Database::Overwrite(bool on) {
  return Run(StrCat("PRAGMA secure_delete=", on ? "ON" : "OFF").c_str());
}

Status Database::SetVersion() {
  PB_RETURN_IF_ERROR(
      Run(StrCat("PRAGMA application_id=", kApplication, "; PRAGMA user_version=", kRecordVersion)
              .c_str()));
  return Checkpoint();  // VersionOf looks into the file alone
}

Status Database::SealClearRows() {
  std::vector<std::uint64_t> sequences;
  PB_RETURN_IF_ERROR(
      ReadAll("SELECT sequence, x'' FROM records", [&](std::uint64_t sequence, std::string_view) {
        sequences.push_back(sequence);
        return absl::OkStatus();
      }));
  for (const std::uint64_t sequence : sequences) {
    std::string bytes;
    const std::string which = StrCat(" FROM records WHERE sequence = ", sequence);
    PB_RETURN_IF_ERROR(ReadAll(StrCat("SELECT sequence, bytes", which).c_str(),
                               [&](std::uint64_t, std::string_view clear) {
                                 bytes = clear;
                                 return absl::OkStatus();
                               }));
    PB_RETURN_IF_ERROR(Run(StrCat("DELETE", which).c_str()));
    PB_RETURN_IF_ERROR(Insert(sequence, std::move(bytes)));
  }
  return absl::OkStatus();
}

Status Database::SealClearSnapshot() {
  constexpr char kAsked[] = "SELECT count(*) FROM sqlite_master WHERE name = 'snapshot'";
  if (FirstText(handle_, kAsked) == "0") return absl::OkStatus();
  PB_RETURN_IF_ERROR(ReadAll("SELECT sequence, bytes FROM snapshot ORDER BY sequence DESC LIMIT 1",
                             [&](std::uint64_t sequence, std::string_view snapshot) {
                               return InsertPieces(sequence, snapshot);
                             }));
  return Run("DROP TABLE snapshot");
}

Status Database::RunOnce(sqlite3_stmt* statement, std::uint64_t key, std::uint64_t sequence,
                         std::string_view bytes) {
  sqlite3_bind_int64(statement, 1, static_cast<sqlite3_int64>(key));
  sqlite3_bind_int64(statement, 2, static_cast<sqlite3_int64>(sequence));
  sqlite3_bind_blob64(statement, 3, bytes.data(), bytes.size(), SQLITE_STATIC);
  const int code = sqlite3_step(statement);
  const Status status = code == SQLITE_DONE ? absl::OkStatus() : Error("write");
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return status;
}

Status Database::Begin() { return Run("BEGIN IMMEDIATE"); }
Status Database::Commit() { return Run("COMMIT"); }

Status Database::Insert(std::uint64_t sequence, std::string record) {
  sealer_.Seal(PlaceOf(sequence, 0), record);
  return RunOnce(insert_, 0, sequence, record);
}

Status Database::InsertPieces(std::uint64_t sequence, std::string_view snapshot) {
  std::uint64_t number = 0;
  do {
    std::string piece(snapshot.substr(0, kPieceBytes));
    snapshot.remove_prefix(piece.size());
    sealer_.Seal(PlaceOf(sequence, ++number), piece);
    PB_RETURN_IF_ERROR(RunOnce(insert_piece_, number, sequence, piece));
  } while (!snapshot.empty());
  return absl::OkStatus();
}

Status Database::Replace(std::uint64_t sequence, std::string_view snapshot) {
  PB_RETURN_IF_ERROR(Run("DELETE FROM pieces"));
  PB_RETURN_IF_ERROR(InsertPieces(sequence, snapshot));
  return Run(StrCat("DELETE FROM records WHERE sequence <= ", sequence).c_str());
}

Status Database::Checkpoint() { return Run("PRAGMA wal_checkpoint(TRUNCATE)"); }

Status Database::ReadAll(const char* sql, const OnRow& row) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr) != SQLITE_OK) return Error("read");
  Status status;
  int code = SQLITE_ROW;
  while (status.ok() && (code = sqlite3_step(statement)) == SQLITE_ROW) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, 1));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, 1));
    status = row(static_cast<std::uint64_t>(sqlite3_column_int64(statement, 0)),
                 std::string_view(bytes, size));
  }
  if (status.ok() && code != SQLITE_DONE) status = Error("read");
  sqlite3_finalize(statement);
  return status;
}

Status Database::ReadSealed(const char* sql, bool pieces, const OnRow& row) {
  std::uint64_t number = 0;
  return ReadAll(sql, [&](std::uint64_t sequence, std::string_view sealed) -> Status {
    if (pieces) ++number;
    auto bytes = sealer_.Open(PlaceOf(sequence, number), sealed);
    if (!bytes.ok()) {
      return DataLoss("read journal: ", path_, ": record ", sequence,
                      pieces ? " of the snapshot: " : ": ", MessageOf(bytes.status()));
    }
    return row(sequence, *bytes);
  });
}

Status Database::ReadSnapshot(const OnRow& row) {
  std::uint64_t sequence = 0;
  std::size_t bytes = 0;
  std::string snapshot;
  if (absl::SimpleAtoi(FirstText(handle_, "SELECT sum(length(bytes)) FROM pieces"), &bytes)) {
    snapshot.reserve(bytes);  // it may take a good part of the memory there is: not twice over
  }
  PB_RETURN_IF_ERROR(ReadSealed("SELECT sequence, bytes FROM pieces ORDER BY number", true,
                                [&](std::uint64_t of, std::string_view piece) {
                                  sequence = of;
                                  snapshot += piece;
                                  return absl::OkStatus();
                                }));
  return sequence == 0 ? absl::OkStatus() : row(sequence, snapshot);
}

Status Database::ReadRecords(const OnRow& row) {
  return ReadSealed("SELECT sequence, bytes FROM records ORDER BY sequence", false, row);
}

}  // namespace patchbay::scheduler
