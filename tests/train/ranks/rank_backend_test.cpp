#include "train/ranks/rank_backend.h"

#include <catch.hpp>
#include <cstdlib>

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

TEST_CASE("a GPU that the environment names by no number is refused by the variable's name") {
  const std::string value = GENERATE("first", "-1", "0x1", "1000");
  setenv(kGpuVariable, value.c_str(), 1);
  CHECK_THROWS_WITH(make_backend(test::tiny_config({"device=auto"})),
                    "DGC_GPU=" + value + ": it has to be the number of a GPU, such as 0");
  unsetenv(kGpuVariable);
}

}  // namespace dgc
