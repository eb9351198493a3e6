#include "json/nearest.h"

#include <catch.hpp>

using dgc::edit_distance;
using dgc::nearest;

TEST_CASE("edit distance by hand", "[config]") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("epcohs", "epochs") == 1);  // a swap of neighbours is one slip
  CHECK(edit_distance("ca", "abc") == 3);         // optimal string alignment, not full Damerau
}

TEST_CASE("only a near name is suggested", "[config]") {
  CHECK(nearest("momentun", {"nesterov", "momentum"}) == "momentum");
  CHECK(nearest("p", {"pad", "k"}) == "k");
  CHECK(nearest("H100", {"a100", "h100"}) == "h100");
  CHECK(nearest("xylophone", {"epochs", "sparsity"}).empty());
  CHECK(nearest("x", {}).empty());
  CHECK(nearest(std::string(1000000, 'a'), {"a"}).empty());
}
