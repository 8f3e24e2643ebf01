// The SQLite file under the journal. Private to scheduler/journal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/seal.h"
#include "runtime/core/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace patchbay::scheduler {

/// One connection: WAL, synchronous=FULL, locked exclusively. Used by one thread at a time. Records
/// are encrypted in the file: they hold names of sources, which can be patients' names.
class Database {
 public:
  /// FailedPrecondition when the file was encrypted with another secret, or is of a later version,
  /// and then left as it is. Records that an earlier version wrote unencrypted are encrypted first.
  static StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                  std::uint64_t file_bytes_max,
                                                  std::string_view secret);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Status Begin();
  /// Between Begin and Commit, or alone: after OK that record survives a power cut, too.
  Status Insert(std::uint64_t sequence, std::string record);
  /// Replaces the snapshot and forgets the records it covers.
  Status Replace(std::uint64_t sequence, std::string_view snapshot);
  /// From now on the file's pages of what is deleted are overwritten, or are not.
  Status Overwrite(bool on);
  /// After OK the inserted records survive a power cut.
  Status Commit();
  /// Moves the write-ahead log into the file and empties it.
  Status Checkpoint();

  using OnRow = std::function<Status(std::uint64_t sequence, std::string_view bytes)>;
  /// Calls once, or not at all when there is none.
  Status ReadSnapshot(const OnRow& row);
  Status ReadRecords(const OnRow& row);

 private:
  Database(std::string path, sqlite3* handle, std::string_view secret);
  Status Prepare();
  Status TakeKey();
  Status SetVersion();
  Status SealClearRows();
  Status SealClearSnapshot();
  Status InsertPieces(std::uint64_t sequence, std::string_view snapshot);
  Status Run(const char* sql);
  Status RunOnce(sqlite3_stmt* statement, std::uint64_t key, std::uint64_t sequence,
                 std::string_view bytes);
  Status ReadAll(const char* sql, const OnRow& row);
  Status ReadSealed(const char* sql, bool pieces, const OnRow& row);
  Status Error(std::string_view doing) const;

  std::string path_;
  sqlite3* handle_;
  Sealer sealer_;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* insert_piece_ = nullptr;
};

/// Unimplemented when the folder lies on a file system whose locks and syncs cannot be trusted.
Status CheckFileSystem(const std::string& folder);

}  // namespace patchbay::scheduler
