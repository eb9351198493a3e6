#include "tensor/counted.h"

#include <catch.hpp>

TEST_CASE("one is singular, and all other numbers are plural", "[tensor]") {
  CHECK(dgc::counted(1, "worker") == "1 worker");
  CHECK(dgc::counted(0, "worker") == "0 workers");
  CHECK(dgc::counted(2, "entry", "entries") == "2 entries");
  CHECK(dgc::counted(1, "entry", "entries") == "1 entry");
}
