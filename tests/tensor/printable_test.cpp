#include "tensor/printable.h"

#include <catch.hpp>

namespace dgc {

TEST_CASE("what can be printed stays, and what commands a terminal becomes numbers", "[tensor]") {
  CHECK(printable("") == "");
  CHECK(printable("runs/a b, \"c\" \\ ~") == "runs/a b, \"c\" \\ ~");
  CHECK(printable("\u00e4\u20ac\U0001f600") == "\u00e4\u20ac\U0001f600");
  CHECK(printable("\x1b[31m\r\n\t\x7f") == "\\x1b[31m\\x0d\\x0a\\x09\\x7f");
  CHECK(printable(std::string("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\u009b2J\u0080") == "\\xc2\\x9b2J\\xc2\\x80");  // a terminal's 8-bit ESC [
  CHECK(printable("\u00a0") == "\u00a0");
  CHECK(printable("x\u202ey\u2066") == "x\\xe2\\x80\\xaey\\xe2\\x81\\xa6");  // from right to left
  CHECK(printable("\x9b\xff\xc3") == "\\x9b\\xff\\xc3");                     // no UTF-8
  CHECK(printable("\xe2\x82") == "\\xe2\\x82");                              // cut off
  CHECK(printable("\xc0\x9b\xe0\x80\x9b") == "\\xc0\\x9b\\xe0\\x80\\x9b");   // longer than need be
}

}  // namespace dgc
