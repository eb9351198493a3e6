#include "tools/units.h"

#include <catch.hpp>

#include "tensor/errors.h"

namespace dgc {

TEST_CASE("bandwidths and durations are read with their units") {
  CHECK(parse_bandwidth("100Mbps", "--bandwidth") == 1e8);
  CHECK(parse_bandwidth("1Gbps", "--bandwidth") == 1e9);
  CHECK(parse_bandwidth("10Gbps", "--bandwidth") == 1e10);
  CHECK(parse_bandwidth("2.5Gbps", "--bandwidth") == 2.5e9);
  CHECK(parse_bandwidth("64kbps", "--bandwidth") == 64000);
  CHECK(parse_duration("50us", "--latency") == Approx(50e-6));
  CHECK(parse_duration("0us", "--latency") == 0);
  CHECK(parse_duration("1.5ms", "--latency") == Approx(0.0015));
  CHECK(parse_duration("2s", "--latency") == 2);
}

TEST_CASE("what is no bandwidth is refused in one sentence") {
  const std::string text = GENERATE("", "fast", "1", "1G", "Gbps", "1gbps", "1 Gbps", "1Gbps ", "0Gbps", "-1Gbps",
                                    "nanGbps", "infGbps", "1e308Gbps", "1e-300kbps", "1us");
  CAPTURE(text);
  CHECK_THROWS_WITH(parse_bandwidth(text, "--bandwidth"),
                    "--bandwidth: \"" + text +
                        "\" is no bandwidth; write a number of kbps, Mbps or Gbps, 1 bit per second at least, as in " +
                        "1Gbps");
}

TEST_CASE("what is no duration is refused in one sentence") {
  const std::string text = GENERATE("", "50", "us", "-1us", "nans", "1e300s", "50 us", "1Gbps");
  CAPTURE(text);
  CHECK_THROWS_WITH(parse_duration(text, "--latency"),
                    "--latency: \"" + text + "\" is no duration; write a number and us, ms or s, as in 50us");
}

}  // namespace dgc
