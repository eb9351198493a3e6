#include "json/text.h"

#include <catch.hpp>

namespace dgc {

TEST_CASE("JSON for standard output says the same, without what commands a terminal", "[config]") {
  const auto printed = [](const char* text) {
    const std::string json = json_text(Json(text));
    CHECK(parse_json(printable_json(json), "printed") == Json(text));
    return printable_json(json);
  };
  CHECK(printed("a \"b\" \\ ~\u00a0\u20ac\U0001f600") == "\"a \\\"b\\\" \\\\ ~\u00a0\u20ac\U0001f600\"");
  CHECK(printed("\x1b\n\x7f") == R"("\u001b\n\u007f")");
  CHECK(printed("\u0080\u009b2J\u009f") == R"("\u0080\u009b2J\u009f")");
  CHECK(printed("x\u202ey\u2069") == R"("x\u202ey\u2069")");  // from right to left
  const std::string indented = json_text({{"a", 1}, {"b", {2}}}, 2);
  CHECK(printable_json(indented) == indented);
}

}  // namespace dgc
