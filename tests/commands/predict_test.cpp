#include <catch.hpp>

#include "json/text.h"
#include "tests/commands/trained.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

}  // namespace

TEST_CASE("predict prints the likeliest classes by name, or as JSON, and refuses what is no image") {
  const Program dgc;
  train_on_pictures(dgc, "run");
  const std::string ant = "animals/val/ant/1.png", bee = "animals/val/bee/1.png";

  const Result one = dgc.run({"predict", "run", ant});
  CAPTURE(one.out, one.err);
  REQUIRE(one.code == 0);
  CHECK_THAT(one.out, Contains(" %  ant\n") && Contains(" %  bee\n"));
  const Result two = dgc.run({"predict", "run", ant, bee});
  CHECK_THAT(two.out, Catch::StartsWith(ant + "\n" + one.out + bee + "\n"));

  const Result lines = dgc.run({"predict", "run", "--json", ant, bee});
  const size_t end = lines.out.find('\n');
  REQUIRE(lines.out.find('\n', end + 1) == lines.out.size() - 1);
  const Json object = parse_json(lines.out.substr(0, end), "--json");
  CHECK(object.at("file") == ant);
  REQUIRE(object.at("top").size() == 2);
  const Json& first = object.at("top").at(0);
  CHECK(first.at("name") == (first.at("class") == 0 ? "ant" : "bee"));
  CHECK_THAT(one.out, Catch::StartsWith(fmt::format("{:6.2f} %  {}\n", 100 * first.at("probability").get<double>(),
                                                    first.at("name").get<std::string>())));
  CHECK(first.at("probability").get<double>() + object.at("top").at(1).at("probability").get<double>() == Approx(1));

  const std::string odd = "animals/\u009b2J.png";  // a terminal's 8-bit ESC [
  std::filesystem::copy(dgc.folder() / ant, dgc.folder() / odd);
  const Result named = dgc.run({"predict", "run", "--json", odd});
  CHECK_THAT(named.out, Catch::StartsWith(R"({"file":"animals/\u009b2J.png",)"));
  CHECK(parse_json(named.out, "--json").at("file") == odd);

  const Result bad = dgc.run({"predict", "run", "tiny.json"});
  CHECK(bad.code == 2);
  CHECK(is_one_line(bad.err));
  CHECK_THAT(bad.err, Contains("tiny.json: neither a JPEG nor a PNG file"));
  const Result mixed = dgc.run({"predict", "run", ant, "tiny.json", "nowhere.png", bee});
  CHECK(mixed.code == 2);
  CHECK(mixed.out == two.out);
  CHECK_THAT(mixed.err, Contains("tiny.json: neither a JPEG nor a PNG file\n") &&
                            Contains("nowhere.png: cannot open it") &&
                            Contains("2 of 4 files could not be used; each is named above"));
}

}  // namespace dgc
