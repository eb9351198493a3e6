// Every case of test_kernels that takes any backend finds this one too, in the program test_sass.
#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/ptx/sass/runner.h"

using namespace dgc;

namespace {

const bool sass_is_added = [] {
  added_backends().push_back({"cuda-sass", []() -> std::unique_ptr<Backend> {
                                return std::make_unique<EmulatedBackend>(1, make_cpu_device(), ptx::sass::runner());
                              }});
  return true;
}();

}  // namespace

TEST_CASE("every instruction of the DGC kernels is known", "[sass]") {
  REQUIRE(sass_is_added);
  size_t kernels = 0;
  for (const std::string& name : ptx::sass::library().names()) {
    if (name.find("::Dgc") == std::string::npos) continue;
    CHECK_NOTHROW(ptx::sass::library().kernel(name));
    ++kernels;
  }
  CHECK(kernels == 13);
}
