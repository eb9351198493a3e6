#include "run/number_text.h"

#include <catch.hpp>
#include <limits>

namespace dgc {

TEST_CASE("numbers read as a person would write them") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1 KiB");
  CHECK(bytes_text(3688) == "3.60 KiB");
  CHECK(bytes_text(102228128) == "97.5 MiB");
  CHECK(percent_text(0.91234) == "91.23 %");
  CHECK(ratio_text(597.66) == "597.7x");
  CHECK(ratio_text(1) == "1.00x");
  CHECK(duration_text(45.2) == "45 s");
  CHECK(duration_text(99.4) == "99 s");
  CHECK(duration_text(99.6) == "2 min");
  CHECK(duration_text(3599) == "1 h 00 min");
  CHECK(duration_text(7500) == "2 h 05 min");
  CHECK(rate_text(0.53) == "0.53");
  CHECK(rate_text(8.14) == "8.1");
  CHECK(rate_text(12345) == "12,345");
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1000) == "1,000");
  CHECK(count_text(-1234567) == "-1,234,567");
  CHECK(loss_text(0.29314) == "0.2931");
  CHECK(loss_text(123456) == "1.235e+05");
}

TEST_CASE("what is no number is a dash") {
  const auto nothing = GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity());
  for (const auto& write : {bytes_text, percent_text, ratio_text, duration_text, rate_text, count_text, loss_text}) {
    CHECK(write(nothing) == "–");
  }
}

}  // namespace dgc
