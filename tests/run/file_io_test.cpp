#include "run/file_io.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch.hpp>
#include <thread>

#include "tensor/errors.h"
#include "tests/support/disk.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using namespace test;
using Catch::Contains;

mode_t mode_of(const fs::path& file) {
  struct stat status {};
  stat(file.c_str(), &status);
  return status.st_mode & 07777;
}

ino_t node_of(const fs::path& file) {
  struct stat status {};
  stat(file.c_str(), &status);
  return status.st_ino;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a file that is replaced stays as it was until the new one is whole") {
  const TempRun folder;
  const fs::path file = folder.path() / "page";
  write_file(file, "old");
  {
    FileWriter half(file);
    half.write("new", 3);
    CHECK(read_file(file) == "old");
  }
  CHECK(read_file(file) == "old");
  {
    const FileSizeLimit full(1000);
    CHECK_THROWS_WITH(write_file(file, std::string(2000, 'x')), "cannot write " + file.string() + ": File too large");
  }
  CHECK(read_file(file) == "old");
  CHECK(names_in(folder.path()) == Names{"page"});
  write_file(file, "new");
  CHECK(read_file(file) == "new");
  CHECK(names_in(folder.path()) == Names{"page"});
}

TEST_CASE("a file that has its text already is left alone") {
  const TempRun folder;
  const fs::path file = folder.path() / "config.json";
  write_if_changed(file, "old");
  const ino_t first = node_of(file);
  write_if_changed(file, "old");
  CHECK(node_of(file) == first);
  write_if_changed(file, "new");
  CHECK(folder.read("config.json") == "new");
}

TEST_CASE("what a killed writer has left is removed, and nothing else is") {
  const TempRun folder;
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {".new-0badcafe", ".new-00000001", "notes", ".newest"}) folder.write(name, "half a file");
  for (const char* name : {".new-0badcafe", "notes", ".newest"}) fs::last_write_time(folder.path() / name, old);
  fs::create_directory(folder.path() / ".new-folder");
  remove_abandoned(folder.path());
  CHECK(names_in(folder.path()) == Names{".new-00000001", ".new-folder", ".newest", "notes"});
  remove_abandoned(folder.path() / "nowhere");
}

TEST_CASE("a replaced file keeps its mode, and a new one has the one the user wants") {
  const TempRun folder;
  const mode_t before = umask(027);
  const fs::path file = folder.path() / "page";
  write_file(file, "old");
  CHECK(mode_of(file) == 0640);
  chmod(file.c_str(), 0604);
  write_file(file, "new");
  CHECK(mode_of(file) == 0604);
  umask(before);
}

TEST_CASE("a replaced file keeps its owner, where root replaces it") {
  const TempRun folder;
  const fs::path file = folder.path() / "page";
  write_file(file, "old");
  if (chown(file.c_str(), 12, 34) != 0) {
    WARN("skipped: only root gives files to others");
    return;
  }
  write_file(file, "new");
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  CHECK(status.st_uid == 12);
  CHECK(status.st_gid == 34);
}

TEST_CASE("a link stays a link, and the file behind it is written") {
  const TempRun folder;
  fs::create_directory(folder.path() / "deep");
  fs::create_symlink("deep/two", folder.path() / "one");
  fs::create_symlink("three", folder.path() / "deep" / "two");
  for (const std::string text : {"the first", "the second"}) {
    write_file(folder.path() / "one", text);
    CHECK(folder.read("deep/three") == text);
  }
  CHECK(fs::is_symlink(folder.path() / "one"));
  CHECK(fs::is_symlink(folder.path() / "deep" / "two"));
  CHECK(names_in(folder.path() / "deep") == Names{"three", "two"});

  fs::create_symlink("itself", folder.path() / "itself");
  CHECK_THROWS_WITH(write_file(folder.path() / "itself", "text"),
                    Contains("itself: Too many levels of symbolic links"));
}

TEST_CASE("devices and pipes are written to, not replaced") {
  const TempRun folder;
  write_file("/dev/null", "text");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_WITH(write_file("/dev/full", "text"), "cannot write /dev/full: No space left on device");
  CHECK(fs::is_character_file("/dev/full"));

  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::string read;
  std::thread reader([&] { read = folder.read("pipe"); });
  write_file(pipe, "text");
  reader.join();
  CHECK(read == "text");
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("what is no file, or larger than it may be, is refused before it is read") {
  const TempRun folder;
  const fs::path pipe = folder.path() / "pipe", large = folder.path() / "large";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const fs::path& path : {pipe, folder.path(), fs::path("/dev/zero")}) {
    CHECK_THROWS_WITH(read_file(path), "cannot read " + path.string() + ": it is no regular file");
  }
  folder.write("large", "text");
  CHECK(read_file(large, 4) == "text");
  CHECK_THROWS_WITH(read_file(large, 3), Catch::Contains(large.string() + ": it has 4 bytes, more than the 3"));
  fs::resize_file(large, uint64_t{1} << 40);  // a hole, which takes no room on the disk
  CHECK_THROWS_WITH(read_file(large), Catch::Contains(large.string() + ": it has 1099511627776 bytes"));
}

TEST_CASE("a place where no file can be is named, with the reason") {
  const TempRun folder;
  const auto said = [](const fs::path& file) -> std::string {
    try {
      write_file(file, "text");
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const fs::path longest = folder.path() / std::string(255, 'n'), longer = folder.path() / std::string(256, 'n');
  CHECK(said(longest).empty());
  CHECK(said(longer) == "cannot create " + longer.string() + ": File name too long");
  CHECK_THAT(said("/" + std::string(5000, '/') + "tmp/x"), Contains("File name too long"));
  CHECK(said(folder.path()) == "cannot create " + folder.path().string() + ": Is a directory");
  CHECK(said(longest / "x") == "cannot create " + (longest / "x").string() + ": Not a directory");
  CHECK(said(folder.path() / "no/x") ==
        "cannot create " + (folder.path() / "no/x").string() + ": No such file or directory");
  CHECK_THAT(said("/proc/version"), Contains(" /proc/version: "));  // where even root cannot
}

TEST_CASE("a place is tried before long work, and stays as it is") {
  const TempRun folder;
  CHECK_THROWS_WITH(require_writable(folder.path()), "cannot create " + folder.path().string() + ": Is a directory");
  CHECK_THROWS_WITH(require_writable("/proc/version"), Contains(" /proc/version: "));
  require_writable(folder.path() / "none");
  CHECK(fs::is_empty(folder.path()));
  folder.write("file", "text");
  require_writable(folder.path() / "file");
  CHECK(folder.read("file") == "text");
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  require_writable(pipe);  // opened by nobody yet
  require_writable("/dev/full");
}

}  // namespace dgc
