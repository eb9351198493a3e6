// The PTX of our own kernels. That it computes what it should is tested by tests/kernels, on the backend cuda-ptx.
#include <catch.hpp>
#include <string>

#include "paths.h"
#include "tests/ptx/interpreter/library.h"

using namespace dgc::ptx;

TEST_CASE("every instruction of every kernel is known", "[ptx]") {
  const std::string folder = DGC_PTX_FOLDER;
  if (folder.empty()) {
    WARN("skipped: this build has no nvcc, so tests run the bodies of the kernels and not the PTX");
    return;
  }
  Library library(folder);
  CHECK_FALSE(library.names().empty());
  for (const std::string& name : library.names()) CHECK_NOTHROW(library.kernel(name));
}
