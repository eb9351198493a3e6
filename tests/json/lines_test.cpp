#include "json/lines.h"

#include <catch.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "tests/config/example.h"
#include "tests/support/json_lines.h"

using namespace dgc;
using test::refusal;
using test::TemporaryFile;
using namespace std::string_literals;

namespace {

std::vector<Row> rows_of(const std::string& text) {
  const TemporaryFile file(text);
  return read_json_lines(file.path());
}

}  // namespace

TEST_CASE("a row is a line, in the order its keys were set", "[config]") {
  Row row;
  row.set("step", 3).set("loss", 0.5).set("skipped", false).set("note", "a \"b\"\n").set("none", nullptr);
  row.set("bytes", size_t{7}).set("step", 4);
  CHECK(to_json_line(row) == R"({"step":4,"loss":0.5,"skipped":false,"note":"a \"b\"\n","none":null,"bytes":7})");
  CHECK(rows_of(to_json_line(row) + "\n") == std::vector{row});

  CHECK(row.integer("step") == 4);
  CHECK(row.number("step") == 4.0);
  CHECK(row.number("loss") == 0.5);
  CHECK(row.integer("loss") == std::nullopt);
  CHECK(row.boolean("skipped") == false);
  CHECK(row.text("note") == "a \"b\"\n");
  CHECK(row.text("absent") == std::nullopt);
  CHECK(row.find("none") != nullptr);
  CHECK(row.find("absent") == nullptr);
}

TEST_CASE("the last row is that of a reader from the start, however long the file and its lines are") {
  const auto last = [](const std::string& text) {
    const TemporaryFile file(text);
    const auto all = read_json_lines(file.path());
    const auto row = last_json_row(file.path());
    CHECK(row == (all.empty() ? std::nullopt : std::optional(all.back())));
    return row ? row->integer("step") : std::nullopt;
  };
  const auto line = [](int64_t step, size_t length) {
    return to_json_line(Row().set("step", step).set("note", std::string(length, 'x'))) + "\n";
  };
  CHECK(last("") == std::nullopt);
  CHECK(last("{\"step\":1") == std::nullopt);
  for (const size_t length : {size_t{0}, size_t{65510}, size_t{65511}, size_t{65512}, size_t{300000}}) {
    CAPTURE(length);
    CHECK(last(line(1, length)) == 1);
    CHECK(last(line(1, 10) + line(2, length)) == 2);
    CHECK(last(line(1, length) + line(2, 10)) == 2);
    CHECK(last(line(1, length) + "{\"torn\":") == 1);
    CHECK(last(line(1, 10) + line(2, length) + std::string(70000, '\0')) == 2);
  }
  const TemporaryFile damaged(line(1, 100000) + "none\n" + line(2, 0));
  CHECK_THAT(refusal([&] { last_json_row(damaged.path()); }),
             Catch::Contains("a line near its end, column ") && Catch::StartsWith(damaged.path()));
}

TEST_CASE("numbers come back bit for bit", "[config]") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const auto back = rows_of(to_json_line(Row().set("x", value)));
    uint64_t back_bits;
    const double number = std::get<double>(*back.at(0).find("x"));  // a double stays one, 1.0 too
    std::memcpy(&back_bits, &number, sizeof number);
    REQUIRE(back_bits == bits);
  }
  for (const int64_t value :
       {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    CHECK(rows_of(to_json_line(Row().set("x", value))).at(0).integer("x") == value);
  }
  CHECK(to_json_line(Row().set("x", 1.0)) == "{\"x\":1.0}");
}

TEST_CASE("what JSON has no number for becomes null", "[config]") {
  CHECK(to_json_line(Row().set("x", std::nan(""))) == "{\"x\":null}");
  CHECK(to_json_line(Row().set("x", -std::numeric_limits<double>::infinity())) == "{\"x\":null}");
}

TEST_CASE("a last line that was cut short is left out", "[config]") {
  const std::string whole = "{\"step\":1}\n{\"step\":12,\"loss\":0.25}\n";
  for (size_t length = 0; length <= whole.size(); ++length) {
    CAPTURE(length);
    const auto rows = rows_of(whole.substr(0, length));
    // A whole object counts even where its newline is missing.
    CHECK(rows.size() == (length >= whole.size() - 1 ? 2 : length >= 10 ? 1 : 0));
  }
  const std::string nuls(20, '\0');
  for (const std::string& torn : {nuls, nuls + "\n", "{\"step\":2}" + nuls, "{\"step\":2" + nuls + "}\n",
                                  std::string("{\"note\":\"caf\xc3"), std::string("{\"step\":2\n")}) {
    CHECK(rows_of("{\"step\":1}\n" + torn).size() == 1);
  }
}

TEST_CASE("any other bad line is named", "[config]") {
  const auto said = [](const std::string& text) {
    const std::string full = refusal([&] { rows_of(text); });
    const size_t at = full.find(": line ");
    return at == std::string::npos ? full : full.substr(at + 2);
  };
  CHECK_THAT(said("{\"a\":1}\n{\"a\":\n{\"a\":3}\n"), Catch::StartsWith("line 2, column 6: not valid JSON: "));
  CHECK_THAT(said("\n{\"a\":3}\n"), Catch::StartsWith("line 1, column 1: "));
  CHECK(said("{\"a\":1}\n{\"a\":\0}\n{\"a\":3}\n"s) == "line 2, column 6: not valid JSON: a NUL byte");
  CHECK(said("[]\n") == "line 1: must be an object, not an array");
  CHECK(said("{\"a\":[]}\n") == "line 1: a: must be a number, string, boolean or null, not an array");
  CHECK(said("{\"a\":1,\"a\":2}\n") == "line 1: a: this key is given twice");
  CHECK(refusal([] { read_json_lines("no/such/file"); }) ==
        "no/such/file: cannot open this file: No such file or directory");
}

TEST_CASE("a line has an end after 64 MiB, or is refused before it fills the memory", "[config]") {
  const TemporaryFile file("{\"step\":1}\n");
  std::filesystem::resize_file(file.path(), (size_t{1} << 26) + (size_t{1} << 20));  // a hole, which takes no disk
  JsonLineReader lines(file.path());
  CHECK(lines.next()->integer("step") == 1);
  CHECK(refusal([&] { lines.next(); }) == file.path() + ": line 2: longer than the 64 MiB that a line may have");
}

TEST_CASE("a reader says how far into the file its newest row reaches", "[config]") {
  const std::string first = "{\"step\":1}\n", long_row = "{\"note\":\"" + std::string(200000, 'a') + "\"}\n";
  const TemporaryFile file(first + long_row + "{\"step\":3}");
  JsonLineReader lines(file.path());
  CHECK(lines.bytes() == 0);
  CHECK(lines.next()->integer("step") == 1);
  CHECK(lines.place() == file.path() + ": line 1");
  CHECK(lines.bytes() == first.size());
  CHECK(lines.next()->text("note")->size() == 200000);
  CHECK(lines.bytes() == first.size() + long_row.size());
  CHECK(lines.ended_with_newline());
  CHECK(lines.next()->integer("step") == 3);
  CHECK(lines.place() == file.path() + ": line 3");
  CHECK_FALSE(lines.ended_with_newline());
  CHECK(lines.bytes() == first.size() + long_row.size() + 10);
  CHECK(lines.next() == std::nullopt);
  CHECK(lines.bytes() == first.size() + long_row.size() + 10);
}
