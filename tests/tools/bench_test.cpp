#include "tools/bench/bench.h"

#include <catch.hpp>

namespace dgc {

TEST_CASE("what is measured becomes rates and shares") {
  DgcBench dgc;
  dgc.parameters = 50'000'000;
  dgc.compress_ms = 4;
  dgc.copy_ms = 2;
  CHECK(dgc.gb_per_s() == Approx(250));  // 20 bytes per parameter are a gigabyte
  CHECK(dgc.copy_gb_per_s() == Approx(500));

  TrainBench train;
  train.global_batch = 16;
  train.ms_per_step = 4;
  CHECK(train.samples_per_s() == Approx(4000));
  CHECK(train.exchange_hidden() == 0);

  DataBench data;
  data.threads = 4;
  data.count = 600;
  data.seconds = 2;
  data.cpu_seconds = 6;
  CHECK(data.samples_per_s() == Approx(300));
  CHECK(data.samples_per_cpu_s() == Approx(100));
  CHECK(data.busy() == Approx(0.75));
}

}  // namespace dgc
