#include "train/ranks/rank_backend.h"

#include <catch.hpp>

#include "tests/support/tiny.h"

namespace dgc {

TEST_CASE("a precision that the device cannot compute in is refused") {
  const auto on_cpu = [](const std::string& precision) {
    return make_backend(test::tiny_config({"precision=\"" + precision + "\""}));
  };
  CHECK_THROWS_WITH(on_cpu("tf32"), Catch::Contains("precision: tf32 needs a GPU"));
  CHECK_THROWS_WITH(on_cpu("fp16"), Catch::Contains("precision: fp16 needs a GPU"));
  if (cpu_multiplies_bf16()) {
    CHECK_NOTHROW(on_cpu("bf16"));
  } else {
    CHECK_THROWS_WITH(on_cpu("bf16"), Catch::Contains("precision: bf16 needs a GPU or a processor with AVX-512 BF16"));
  }
}

}  // namespace dgc
