#include "data/file.h"

#include <sys/stat.h>

#include "tests/data/fixtures.h"

namespace dgc {
namespace {

using FileLines = std::vector<std::string>;

TEST_CASE("the lines of a text come without what ends them, nor what may begin it") {
  const TempFolder folder;
  const auto lines_of = [&](const std::string& path) {
    FileLines lines;
    for_each_line(path, "", [&](const std::string& line, const std::string& where) {
      CHECK(where == path + ": line " + std::to_string(lines.size() + 1));
      lines.push_back(line);
    });
    return lines;
  };
  const std::string text = "\xEF\xBB\xBFone\r\n\ntwo\rthree\r\n\xEF\xBB\xBFlast";
  const FileLines expected = {"one", "", "two\rthree", "\xEF\xBB\xBFlast"};
  CHECK(lines_of(folder.write("a.txt", bytes_of_text(text))) == expected);
  CHECK(lines_of(folder.write("a.txt.gz", gzip(bytes_of_text(text)))) == expected);
  CHECK(lines_of(folder.write("none.txt", {})).empty());
}

TEST_CASE("a line with a NUL byte, as in UTF-16, is refused") {
  const TempFolder folder;
  const std::string path = folder.write("a.txt", {'o', 'n', 'e', '\n', 't', 0, '\n'});
  size_t lines = 0;
  CHECK(user_error([&] { for_each_line(path, "", [&](const std::string&, const std::string&) { ++lines; }); }) ==
        path + ": line 2 has a NUL byte, so it is no UTF-8 text; convert it to UTF-8");
  CHECK(lines == 1);
}

TEST_CASE("a file may have as many bytes as it may have, and no more") {
  const TempFolder folder;
  const std::string path = folder.write("a", counting(1 << 20));
  Bytes out;
  read_file(path, 1 << 20, out);
  CHECK(out == counting(1 << 20));
  const std::string longer = folder.write("b", counting((1 << 20) + 1));
  CHECK(user_error([&] { read_file(longer, 1 << 20, out); }) ==
        longer + ": longer than the 1 MiB that such a file may have");
}

TEST_CASE("a pipe in the place of data is refused, and not waited for") {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(user_error([&] { InputFile file(pipe); }) ==
        pipe + ": this is a pipe, and data are read from files alone: give a file");
}

TEST_CASE("the names in a folder are sorted, and a folder that cannot be listed is named") {
  const TempFolder folder;
  for (const char* name : {"c", "a", "d", "b"}) folder.write(name, {});
  const auto not_c = [](const std::filesystem::directory_entry& entry) { return entry.path().filename() != "c"; };
  CHECK(names_in(folder.path(), not_c) == FileLines{"a", "b", "d"});
  CHECK(user_error([&] { names_in(folder.path() + "/none", not_c); }) ==
        folder.path() + "/none: cannot list the folder: No such file or directory");
}

}  // namespace
}  // namespace dgc
